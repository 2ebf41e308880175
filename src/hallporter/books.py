"""What a transaction can read and write: one small book per noun, the same on every database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from hallporter.domain.backlog import Waiting
    from hallporter.domain.chat import Chat, ChatSeen
    from hallporter.domain.command import Carried
    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.group import Group
    from hallporter.domain.ids import (
        ChatId,
        CommandId,
        Folder,
        MessageId,
        SessionId,
        TaskId,
        TokenId,
        TurnId,
    )
    from hallporter.domain.message import Message, State
    from hallporter.domain.notice import Failing, Notice, Undelivered
    from hallporter.domain.outbox import Delivery, Outgoing, Part
    from hallporter.domain.removal import Begun, Reason, Removal
    from hallporter.domain.task import Burden, Over, Task, Tick
    from hallporter.domain.token import Token
    from hallporter.domain.turn import Note, Turn
    from hallporter.domain.visit import Link, Session


class Chats(Protocol):
    """Every chat ever seen, and where it stands."""

    def seen(self, what: ChatSeen) -> None:
        """Note a chat's existence; a known name or kind is never forgotten."""

    def get(self, chat: ChatId) -> Chat | None: ...
    def all(self) -> Sequence[Chat]: ...
    def raise_head(self, chat: ChatId) -> int:
        """The next sequence number. Every writer of a chat does this first: it takes the row's
        lock, so the order of numbers is the order of commits."""
        ...

    def lock(self, chat: ChatId) -> Chat:
        """The chat's row, held until the end of the transaction."""
        ...

    def hold(self, chat: ChatId, epoch: int) -> Chat:
        """The same, but only for the claim that still counts; else `FencedError`."""
        ...

    def save(self, chat: Chat) -> None:
        """Write back a row that this transaction holds; `head` is not touched."""

    def woken(self) -> Sequence[Chat]:
        """Those that wait for a claim, longest wait first."""
        ...

    def forgotten(self) -> Sequence[ChatId]:
        """Those with a queued message and neither a wake-up nor an open turn: the safety net."""
        ...

    def unheard(self) -> Sequence[ChatId]:
        """Those with a due tick that nobody rang for, and no open turn: the safety net."""
        ...


class Messages(Protocol):
    """The transcript: what people and we have said, in order."""

    def add(self, message: Message) -> None: ...
    def get(self, message: MessageId) -> Message | None: ...
    def find(self, name: str) -> Sequence[Message]:
        """By our id or by the network's."""
        ...

    def repeat_of(self, chat: ChatId, sender: str, ext_id: str) -> Message | None:
        """The message already stored under the network's id, if any."""
        ...

    def waiting(self, chat: ChatId, after: int) -> Sequence[Waiting]:
        """The backlog without its words, which may be many."""
        ...

    def backlog(self, chat: ChatId, after: int) -> Sequence[Message]:
        """People's messages to the agent past `after` that may still be given to one."""
        ...

    def first_waking(self, chat: ChatId, after: int) -> Message | None:
        """The oldest one past `after` that asks for an answer and may still get one."""
        ...

    def page(self, chat: ChatId, after: int, limit: int) -> Sequence[Message]:
        """The next ones past `after`: at most `limit`, fewer when their words are long, none only
        when there is none."""
        ...

    def between(self, chat: ChatId, after: int, through: int) -> Sequence[MessageId]:
        """People's messages to the agent in (after, through]."""
        ...

    def before(self, chat: ChatId, seq: int, limit: int) -> Sequence[Message]:
        """The last ones below `seq`, in order."""
        ...

    def mark(
        self,
        chat: ChatId,
        *,
        after: int,
        through: int,
        was: Sequence[State],
        state: State,
        turn: TurnId | None,
    ) -> Sequence[MessageId]:
        """Move people's messages in (after, through] from one of `was` to `state`."""
        ...

    def ignore(self, chat: ChatId, why: str) -> None:
        """Nobody will be given those that wait, are queued or failed."""

    def replies(self, chat: ChatId, seq: int) -> Sequence[Message]:
        """What the agent said to the message with this number."""
        ...

    def sent(self, chat: ChatId, after: int, since: datetime) -> Sequence[str]:
        """The texts past `after` that agents sent by a command, from a moment on, in order; the
        names of files that went along are said."""
        ...

    def files(self, chat: ChatId | None = None) -> Sequence[Enclosure]:
        """Those that go along with messages, the newest of a chat first."""
        ...

    def counts(self) -> Mapping[str, int]:
        """People's messages that are still open, by state."""
        ...


class Turns(Protocol):
    """Each turn and what was noted of it."""

    def add(self, turn: Turn) -> None: ...
    def get(self, turn: TurnId) -> Turn | None: ...
    def save(self, turn: Turn) -> None: ...
    def note(self, note: Note) -> None: ...
    def open_in(self, chat: ChatId) -> Turn | None:
        """The one that runs now."""
        ...

    def unfinished(self) -> Sequence[Turn]:
        """Those that a host left open when it ended."""
        ...

    def given(self, chat: ChatId, seq: int) -> Sequence[Turn]:
        """The turns whose agent was given this message, in order."""
        ...

    def last_in(self, chat: ChatId) -> Turn | None:
        """The newest one, whatever it served."""
        ...

    def of_tick(self, chat: ChatId, tick: Tick) -> Sequence[Turn]:
        """The turns that served it, in order."""
        ...

    def notes(self, turns: Sequence[TurnId]) -> Sequence[Note]: ...
    def failures(self, since: datetime) -> Sequence[Turn]:
        """Failed ones, newest first."""
        ...


class Outbox(Protocol):
    """What is on its way out."""

    def put(self, row: Outgoing) -> bool:
        """False when the key is known already: nothing was written."""
        ...

    def has(self, key: str) -> bool: ...
    def pending(self, chat: ChatId, limit: int) -> Sequence[Outgoing]:
        """Unsent rows of a chat in order."""
        ...

    def chats_with_pending(self) -> Sequence[ChatId]: ...
    def save_part(self, number: int, index: int, part: Part) -> None: ...
    def finish(self, number: int, state: Delivery, why: str) -> None: ...
    def of_messages(self, messages: Sequence[MessageId]) -> Sequence[Outgoing]: ...
    def said_as(self, chat: ChatId, message_id: str) -> MessageId | None:
        """The message of ours that went to this chat under a network's id, whole or in part."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Rows that were not sent, by state."""
        ...


class Groups(Protocol):
    """Chats with a folder and an agent of their own."""

    def add(self, group: Group) -> None: ...
    def save(self, group: Group) -> None: ...
    def remove(self, folder: Folder) -> None: ...
    def leave(self, folder: Folder) -> None:
        """Remove a group whose files stay; whose they were is remembered until another group gets
        the folder."""

    def left_by(self, chat: ChatId) -> Sequence[Folder]:
        """The folders that groups of this chat have left."""
        ...

    def forget_left(self, chat: ChatId) -> None:
        """They are gone."""

    def of_chat(self, chat: ChatId) -> Group | None: ...
    def of_folder(self, folder: str) -> Group | None:
        """In any letter case: two folders must not differ by case alone."""
        ...

    def main(self) -> Group | None: ...
    def count(self) -> int: ...
    def all(self) -> Sequence[Group]: ...


class Tasks(Protocol):
    """Standing prompts and their ticks."""

    def add(self, task: Task) -> None: ...
    def get(self, task: TaskId) -> Task | None: ...
    def save(self, task: Task) -> None: ...
    def remove(self, task: TaskId) -> None:
        """With all its ticks."""

    def all(self) -> Sequence[Task]: ...
    def of_folder(self, folder: Folder) -> Sequence[Task]: ...
    def of_others(self, folder: Folder, words: int) -> Sequence[Task]:
        """All but a folder's, with so many characters of their prompts at most."""
        ...

    def burden(self, folder: Folder, *, but: TaskId) -> Burden:
        """Of all its tasks but one."""
        ...

    def completed(self, folder: Folder, *, but: TaskId) -> Sequence[Over]:
        """All of them but one, oldest first."""
        ...

    def due(self, now: datetime, limit: int) -> Sequence[Task]:
        """Whose next time has come, earliest first."""
        ...

    def counts(self) -> Mapping[str, int]:
        """By status."""
        ...

    def next_at(self) -> datetime | None:
        """The nearest time that any task waits for."""
        ...

    def add_tick(self, tick: Tick) -> bool:
        """False when this due time has its row already: nothing was written."""
        ...

    def tick(self, task: TaskId, due: datetime) -> Tick | None: ...
    def save_tick(self, tick: Tick) -> None: ...
    def move_tick(self, tick: Tick, to: Tick) -> bool:
        """Give the row of a tick to another of its task; False when that has a row already."""
        ...

    def prune_ticks(self, task: TaskId, keep: int) -> None:
        """Only the newest stay, and those that wait or run."""

    def waiting_tick(self, chat: ChatId) -> Tick | None:
        """The earliest tick of a chat that is due and not taken up."""
        ...

    def waiting(self, task: Task) -> int:
        """How many ticks of a task are due and not taken up."""
        ...

    def ticks(self, task: TaskId, limit: int, before: datetime | None = None) -> Sequence[Tick]:
        """The newest first, of those due before a time or of all."""
        ...

    def skip_waiting(self, task: TaskId, why: str) -> None:
        """Those that are due and not taken up will not run."""

    def given_up(self, failures: int) -> Sequence[Task]:
        """Those that are paused after so many failures in a row."""
        ...


class Commands(Protocol):
    """What agents asked for, and what became of it."""

    def add(self, command: Carried) -> None: ...
    def get(self, command: CommandId) -> Carried | None: ...
    def all(self, folder: Folder | None, limit: int) -> Sequence[Carried]:
        """The newest first."""
        ...


class Tokens(Protocol):
    """Bearer tokens, by hash."""

    def add(self, token: Token) -> None: ...
    def of_digest(self, digest: str) -> Token | None: ...
    def get(self, token: TokenId) -> Token | None: ...
    def all(self) -> Sequence[Token]: ...
    def save(self, token: Token) -> None: ...


class Sessions(Protocol):
    """Browsers that have logged in, by hash."""

    def add(self, session: Session) -> None: ...
    def of_digest(self, digest: str) -> Session | None: ...
    def get(self, session: SessionId) -> Session | None: ...
    def all(self) -> Sequence[Session]:
        """The last used one first."""
        ...

    def save(self, session: Session) -> None: ...
    def forget(self, unused_since: datetime) -> None:
        """Remove those that were revoked, or not used since then."""


class Links(Protocol):
    """One-time links, by hash."""

    def add(self, link: Link) -> None: ...
    def get(self, digest: str) -> Link | None: ...
    def use(self, digest: str, at: datetime) -> None: ...
    def forget(self, before: datetime) -> None:
        """Remove those that expired before then."""


class Notices(Protocol):
    """What needs the operator, and what it is raised for."""

    def save(self, notice: Notice) -> None:
        """New, or in the place of the one with the same key."""

    def get(self, key: str) -> Notice | None: ...
    def all(self) -> Sequence[Notice]: ...
    def open(self) -> Sequence[Notice]: ...
    def failing(self) -> Sequence[Failing]:
        """Groups whose last turn failed, or whose chat is parked."""
        ...

    def undelivered(self, since: datetime) -> Sequence[Undelivered]: ...


class Removals(Protocol):
    """Taking things out for good, and what stays of it: how much it was."""

    def add(self, removal: Removal) -> None: ...
    def last(self, reason: Reason) -> Removal | None: ...
    def forget(self, chat: ChatId) -> Mapping[str, int]:
        """All rows of what was said in a chat; the chat itself and its numbers stay."""
        ...

    def old_messages(self, before: datetime, limit: int) -> Sequence[MessageId]:
        """Said before then, and nobody still waits for them."""
        ...

    def drop_message(self, message: MessageId) -> bool:
        """False when someone has begun to need it."""
        ...

    def drop_turns(self, before: datetime, limit: int) -> int:
        """Ended before then, and no message left that they belong to; how many."""
        ...

    def old_ticks(self, before: datetime, limit: int) -> Sequence[tuple[TaskId, datetime]]:
        """Due before then, and over."""
        ...

    def drop_tick(self, task: TaskId, due: datetime) -> None: ...
    def drop_commands(self, before: datetime, limit: int) -> int:
        """The record of those that came before then; how many."""
        ...

    def begin(self, begun: Begun) -> None:
        """In the transaction that forgets a chat's rows; it replaces what had begun before."""

    def begun(self) -> Sequence[Begun]: ...
    def finished(self, chat: ChatId) -> None:
        """Nothing of the chat's forgetting is to follow any more."""

    def owe_scrub(self, at: datetime) -> None:
        """In the transaction that removes something: its traces are still in the files."""

    def owed_scrub(self) -> int | None:
        """The newest that is owed."""
        ...

    def scrubbed(self, number: int) -> None:
        """Up to this one nothing is owed any more."""


class Tx(Protocol):
    """One transaction: all of it happens, or none."""

    @property
    def chats(self) -> Chats: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def commands(self) -> Commands: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def links(self) -> Links: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def removals(self) -> Removals: ...
    def after_commit(self, action: Callable[[], None]) -> None:
        """Run on the event loop once the transaction is durable; never if it is not."""
