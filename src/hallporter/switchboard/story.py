"""What was said in a chat, and what became of it: for reading only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError, NotFoundError
from hallporter.domain.fate import Fate, held_by, tell
from hallporter.domain.ids import MessageId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.books import Tx
    from hallporter.domain.ids import ChatId
    from hallporter.domain.message import Message
    from hallporter.domain.turn import Turn
    from hallporter.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Messages in order; `next` is where the following page begins, None at the end."""

    messages: Sequence[Message]
    next: MessageId | None


class Story:
    """The use cases behind the transcript, `explain` and the fate endpoint."""

    def __init__(self, *, store: Store) -> None:
        self._store = store

    async def is_open(self, chat: ChatId) -> bool:
        """Whether the chat is registered, so that someone answers in it."""
        return await self._store.read(lambda tx: tx.groups.of_chat(chat) is not None)

    async def page(self, chat: ChatId, *, after: str | None, limit: int) -> Page:
        """`after` is a message of this chat; without it from the oldest."""

        def fn(tx: Tx) -> Page:
            seq = 0 if after is None else _place(tx, chat, after)
            messages = tx.messages.page(chat, seq, limit)
            has_more = bool(messages and tx.messages.page(chat, messages[-1].seq, 1))
            return Page(messages=messages, next=messages[-1].id if has_more else None)

        return await self._store.read(fn)

    async def before(self, chat: ChatId, seq: int | None, limit: int) -> Sequence[Message]:
        """The last messages below a sequence number, or the newest of all, in order."""

        def fn(tx: Tx) -> Sequence[Message]:
            row = tx.chats.get(chat)
            end = seq if seq is not None else (0 if row is None else row.head) + 1
            return tx.messages.before(chat, end, limit)

        return await self._store.read(fn)

    async def since(self, chat: ChatId, seq: int, limit: int) -> Sequence[Message]:
        """What came after a sequence number, some at a time: for streams, until none is left."""
        return await self._store.read(lambda tx: tx.messages.page(chat, seq, limit))

    async def given_in(self, turn: Turn) -> Sequence[MessageId]:
        """The messages that a turn's agent was given."""
        return await self._store.read(
            lambda tx: tx.messages.between(turn.chat, turn.cursor, turn.piped)
        )

    async def place_of(self, chat: ChatId, message: str) -> int:
        return await self._store.read(lambda tx: _place(tx, chat, message))

    async def standing(self, chat: ChatId) -> tuple[int, Turn | None]:
        """The chat's newest sequence number and the turn that runs in it now."""

        def fn(tx: Tx) -> tuple[int, Turn | None]:
            row = tx.chats.get(chat)
            return (0 if row is None else row.head, tx.turns.open_in(chat))

        return await self._store.read(fn)

    async def fates(self, name: str) -> Sequence[Fate]:
        """By our id or the network's; several when the network's id is not unique."""
        fates = await self._store.read(
            lambda tx: [_fate(tx, message) for message in tx.messages.find(name)]
        )
        if not fates:
            message = f"no message {name!r}: neither an id of ours nor one of a network's"
            raise NotFoundError(message, id=name)
        return fates


def _place(tx: Tx, chat: ChatId, name: str) -> int:
    message = tx.messages.get(MessageId(name))
    if message is None or message.chat != chat:
        text = f"no message {name[:80]!r} in this chat: 'after' is the id of a message in it"
        raise InvalidRequestError(text, field="after", value=name[:80])
    return message.seq


def _fate(tx: Tx, message: Message) -> Fate:
    if message.is_bot:
        turn = tx.turns.get(message.turn) if message.turn else None
        turns: Sequence[Turn] = [turn] if turn else []
        replies: Sequence[Message] = []
        outgoing = tx.outbox.of_messages([message.id])
    else:
        turns = held_by(message, tx.turns.given(message.chat, message.seq))
        had = {turn.id for turn in turns}
        replies = [r for r in tx.messages.replies(message.chat, message.seq) if r.turn in had]
        outgoing = tx.outbox.of_messages([reply.id for reply in replies])
    chat = tx.chats.get(message.chat)
    return tell(
        message,
        turns=turns,
        notes=tx.turns.notes([turn.id for turn in turns]),
        replies=replies,
        outgoing=outgoing,
        retry_at=chat.not_before or chat.woken_at if chat is not None else None,
    )
