"""Registering chats: which of them have a folder, a trigger and an agent of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import ConflictError, InvalidRequestError, NotFoundError
from hallporter.domain.folder import parse_folder
from hallporter.domain.group import Group
from hallporter.domain.ids import ChatId
from hallporter.domain.message import State
from hallporter.domain.trigger import check_trigger
from hallporter.domain.turn import Note, Outcome, What

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hallporter.books import Tx
    from hallporter.ports import Channel, Clock, Store

MAIN_CHAT = ChatId("web:main")
_MAX_NAME = 200  # characters
_REMOVED = "the group was removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroup:
    """What is asked for; empty values get the house's defaults."""

    chat: str
    name: str
    folder: str
    trigger: str | None = None
    requires_trigger: bool = True
    is_main: bool = False
    agent: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """Only what is given changes; an agent setting of None goes back to the house's own."""

    name: str | None = None
    trigger: str | None = None
    requires_trigger: bool | None = None
    is_main: bool | None = None
    agent: Mapping[str, object] | None = None


class Groups:
    """The use cases behind `groups …`, `/api/groups` and the first start."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        channel_of: Callable[[ChatId], Channel | None],
        check_agent: Callable[[Mapping[str, object]], Mapping[str, object]],
        refuse_fixed: Callable[[str, Mapping[str, object]], None],
        close_warm: Callable[[ChatId], None],
        assistant_name: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._channel_of = channel_of
        self._check_agent = check_agent
        self._refuse_fixed = refuse_fixed
        self._close_warm = close_warm
        self._default_trigger = f"@{assistant_name}"

    async def all(self) -> Sequence[Group]:
        return await self._store.read(lambda tx: tx.groups.all())

    async def get(self, folder: str) -> Group:
        return await self._store.read(lambda tx: _known(tx, folder))

    async def add(self, new: NewGroup) -> Group:
        """Folder and chat are unique; at most one group is main, and the flag can be moved."""
        return await self._store.write(lambda tx: self._add(tx, new))

    async def change(self, folder: str, change: GroupChange) -> Group:
        return await self._store.write(lambda tx: self._change(tx, folder, change))

    async def remove(self, folder: str) -> Group:
        """The folder and the history stay: `forgetting` takes them, too."""

        def fn(tx: Tx) -> Group:
            group = removable(tx, folder)
            self._silence(tx, group)
            tx.groups.leave(group.folder)
            return group

        return await self._store.write(fn)

    async def ensure_main(self) -> Group | None:
        """A house without a main group gets one on the web chat; the new group, if it was made."""

        def fn(tx: Tx) -> Group | None:
            if tx.groups.main() is not None:
                return None
            if (there := tx.groups.of_chat(MAIN_CHAT)) is not None:
                main = replace(there, is_main=True)
                tx.groups.save(main)
                return main
            folder = "main" if tx.groups.of_folder("main") is None else "main-web"
            new = NewGroup(chat=MAIN_CHAT, name="Main", folder=folder, is_main=True)
            return self._add(tx, new)

        return await self._store.write(fn)

    def _silence(self, tx: Tx, group: Group) -> None:
        """A turn that runs is stopped: whoever still works writes under an epoch that no longer
        counts."""
        now = self._clock.now()
        chat = tx.chats.lock(group.chat)
        if (turn := tx.turns.open_in(chat.id)) is not None:
            tx.messages.mark(
                chat.id,
                after=chat.cursor,
                through=turn.piped,
                was=(State.RUNNING,),
                state=State.STOPPED,
                turn=turn.id,
            )
            tx.turns.save(replace(turn, outcome=Outcome.STOPPED, ended_at=now, why=_REMOVED))
            tx.turns.note(
                Note(
                    turn=turn.id,
                    at=now,
                    what=What.ENDED,
                    after=chat.cursor,
                    through=turn.piped,
                    why=_REMOVED,
                )
            )
        tx.messages.ignore(chat.id, _REMOVED)
        tx.chats.save(replace(chat.settled(chat.head), epoch=chat.epoch + 1, woken_at=None))
        tx.after_commit(lambda: self._close_warm(chat.id))

    def _add(self, tx: Tx, new: NewGroup) -> Group:
        chat = self._known_chat(new.chat)
        folder = parse_folder(new.folder)
        agent = self._check_agent(new.agent or {})
        self._refuse_fixed(folder, agent)
        if (other := tx.groups.of_folder(folder)) is not None:
            message = f"folder {new.folder!r} is taken by {other.chat}: choose another"
            raise ConflictError(message, field="folder", value=new.folder)
        if (other := tx.groups.of_chat(chat)) is not None:
            message = f"chat {chat} is registered already, as {other.folder!r}"
            raise ConflictError(message, field="chat", value=chat)
        group = Group(
            chat=chat,
            name=_checked_name(new.name),
            folder=folder,
            trigger=check_trigger(new.trigger or self._default_trigger),
            requires_trigger=new.requires_trigger,
            is_main=new.is_main,
            added_at=self._clock.now(),
            agent=agent,
        )
        if group.is_main:
            _unset_main(tx)
        if tx.chats.get(chat) is None:
            channel = self._channel_of(chat)
            name = channel.name if channel is not None else ""
            seen = ChatSeen(chat=chat, channel=name, at=group.added_at, name=group.name)
            tx.chats.seen(seen)
        tx.groups.add(group)
        return group

    def _change(self, tx: Tx, folder: str, change: GroupChange) -> Group:
        group = _known(tx, folder)
        if change.is_main is False and group.is_main:
            message = "exactly one group is main: make another one main instead"
            raise ConflictError(message, field="is_main", value=False)
        agent = group.agent
        if change.agent is not None:
            self._refuse_fixed(group.folder, change.agent)
            merged = {**group.agent, **change.agent}
            agent = self._check_agent({k: v for k, v in merged.items() if v is not None})
        changed = replace(
            group,
            name=group.name if change.name is None else _checked_name(change.name),
            trigger=group.trigger if change.trigger is None else check_trigger(change.trigger),
            requires_trigger=(
                group.requires_trigger
                if change.requires_trigger is None
                else change.requires_trigger
            ),
            is_main=group.is_main or bool(change.is_main),
            agent=agent,
        )
        if changed.is_main and not group.is_main:
            _unset_main(tx)
        tx.groups.save(changed)
        if changed.agent != group.agent or changed.is_main != group.is_main:
            # The next turn must find an agent with the new settings and mounts, not a warm one.
            tx.after_commit(lambda: self._close_warm(group.chat))
        return changed

    def _known_chat(self, chat: str) -> ChatId:
        found = ChatId(chat)
        if self._channel_of(found) is None:
            message = (
                f"chat id {chat[:80]!r} belongs to no configured channel:"
                " a web chat is 'web:NAME' (letters, digits, '.', '_', '-')"
            )
            raise InvalidRequestError(message, field="chat", value=chat[:80])
        return found


def _known(tx: Tx, folder: str) -> Group:
    group = tx.groups.of_folder(folder)
    if group is None:
        raise NotFoundError(f"no group has the folder {folder!r}", field="folder", value=folder)
    return group


def removable(tx: Tx, folder: str) -> Group:
    """Raises `NotFoundError`, or `ConflictError` for the main group."""
    group = _known(tx, folder)
    if group.is_main:
        message = "this is the main group: make another one main first"
        raise ConflictError(message, field="folder", value=folder)
    return group


def _checked_name(name: str) -> str:
    trimmed = " ".join(name.split())
    if not trimmed or len(trimmed) > _MAX_NAME:
        message = f"a group's name has 1 to {_MAX_NAME} characters"
        raise InvalidRequestError(message, field="name", value=name[:80])
    return trimmed


def _unset_main(tx: Tx) -> None:
    if (main := tx.groups.main()) is not None:
        tx.groups.save(replace(main, is_main=False))
