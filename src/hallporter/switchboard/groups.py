"""Registering chats: which of them have a folder, a trigger and an agent of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import ConflictError, InvalidRequestError, NotFoundError
from hallporter.domain.folder import parse_folder
from hallporter.domain.group import (
    Everyone,
    Group,
    SenderChange,
    SenderRule,
    check_assistant_name,
    check_name,
)
from hallporter.domain.ids import ChatId
from hallporter.domain.trigger import check_trigger, default_trigger
from hallporter.switchboard.discovery import known_chats
from hallporter.switchboard.silencing import silence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hallporter.books import Tx
    from hallporter.domain.ids import Folder
    from hallporter.ports import Channel, Clock, Store
    from hallporter.switchboard.discovery import KnownChat

MAIN_CHAT = ChatId("web:main")
MAIN_NAME = "Main"


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
    assistant_name: str | None = None
    senders: SenderChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """Only what is given changes; an agent setting of None and an empty name of the assistant go
    back to the house's own."""

    name: str | None = None
    trigger: str | None = None
    requires_trigger: bool | None = None
    is_main: bool | None = None
    agent: Mapping[str, object] | None = None
    assistant_name: str | None = None
    senders: SenderChange | Everyone | None = None


class Groups:
    """The use cases behind `groups …`, `/api/groups`, what main's agent may register, and the first
    start. `changed` hears after the commit of each group that came, changed or went."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        channel_of: Callable[[ChatId], Channel | None],
        check_agent: Callable[[Mapping[str, object]], Mapping[str, object]],
        refuse_fixed: Callable[[str, Mapping[str, object]], None],
        refuse_fixed_senders: Callable[[str, SenderChange | Everyone], None],
        close_warm: Callable[[ChatId], None],
        changed: Callable[[Folder], None],
        assistant_name: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._channel_of = channel_of
        self._check_agent = check_agent
        self._refuse_fixed = refuse_fixed
        self._refuse_fixed_senders = refuse_fixed_senders
        self._close_warm = close_warm
        self._changed = changed
        self._assistant_name = assistant_name

    async def all(self) -> Sequence[Group]:
        return await self._store.read(lambda tx: tx.groups.all())

    async def get(self, folder: str) -> Group:
        return await self._store.read(lambda tx: _known(tx, folder))

    async def of_chat(self, chat: ChatId) -> Group | None:
        return await self._store.read(lambda tx: tx.groups.of_chat(chat))

    async def known_chats(self) -> Sequence[KnownChat]:
        """Also those that are no groups yet, the liveliest first."""
        return await self._store.read(known_chats)

    async def add(self, new: NewGroup) -> Group:
        return await self._store.write(lambda tx: self.register(tx, new))

    async def change(self, folder: str, change: GroupChange) -> Group:
        return await self._store.write(lambda tx: self._change(tx, folder, change))

    async def remove(self, folder: str) -> Group:
        """The folder and the history stay: `forgetting` takes them, too."""

        def fn(tx: Tx) -> Group:
            group = removable(tx, folder)
            self._silence(tx, group)
            tx.groups.leave(group.folder)
            tx.after_commit(lambda: self._changed(group.folder))
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
                tx.after_commit(lambda: self._changed(main.folder))
                return main
            folder = "main" if tx.groups.of_folder("main") is None else "main-web"
            new = NewGroup(chat=MAIN_CHAT, name=MAIN_NAME, folder=folder, is_main=True)
            return self.register(tx, new)

        return await self._store.write(fn)

    def _silence(self, tx: Tx, group: Group) -> None:
        silence(tx, group, self._clock.now())
        tx.after_commit(lambda: self._close_warm(group.chat))

    def register(self, tx: Tx, new: NewGroup) -> Group:
        """Folder and chat are unique; at most one group is main, and the flag can be moved.

        Raises `InvalidRequestError` or `ConflictError`, and then has written nothing.
        """
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
        own_name = check_assistant_name(new.assistant_name) if new.assistant_name else None
        group = Group(
            chat=chat,
            name=check_name(new.name),
            folder=folder,
            trigger=check_trigger(new.trigger or self._default_trigger(own_name)),
            requires_trigger=new.requires_trigger,
            is_main=new.is_main,
            added_at=self._clock.now(),
            agent=agent,
            assistant_name=own_name,
            senders=None if new.senders is None else self._ruled(folder, None, new.senders),
        )
        if group.is_main:
            self._unset_main(tx)
        if tx.chats.get(chat) is None:
            channel = self._channel_of(chat)
            name = channel.name if channel is not None else ""
            seen = ChatSeen(chat=chat, channel=name, at=group.added_at, name=group.name)
            tx.chats.seen(seen)
        tx.groups.add(group)
        tx.after_commit(lambda: self._changed(folder))
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
        needs = change.requires_trigger
        changed = replace(
            self._renamed(group, change.assistant_name),
            name=group.name if change.name is None else check_name(change.name),
            requires_trigger=group.requires_trigger if needs is None else needs,
            is_main=group.is_main or bool(change.is_main),
            agent=agent,
        )
        if change.trigger is not None:
            changed = replace(changed, trigger=check_trigger(change.trigger))
        if change.senders is not None:
            rule = self._ruled(group.folder, group.senders, change.senders)
            changed = replace(changed, senders=rule)
        if changed.is_main and not group.is_main:
            self._unset_main(tx)
        tx.groups.save(changed)
        if _works_differently(group, changed):
            # The next turn must find an agent with the new settings and mounts, not a warm one.
            tx.after_commit(lambda: self._close_warm(group.chat))
        tx.after_commit(lambda: self._changed(group.folder))
        return changed

    def _default_trigger(self, own_name: str | None) -> str:
        return default_trigger(own_name or self._assistant_name)

    def _renamed(self, group: Group, asked: str | None) -> Group:
        """A trigger that was made of the old name goes with it; an empty name is the house's."""
        if asked is None:
            return group
        own_name = check_assistant_name(asked) if asked else None
        is_made = group.trigger == self._default_trigger(group.assistant_name)
        trigger = self._default_trigger(own_name) if is_made else group.trigger
        return replace(group, assistant_name=own_name, trigger=trigger)

    def _ruled(
        self, folder: Folder, rule: SenderRule | None, change: SenderChange | Everyone
    ) -> SenderRule | None:
        self._refuse_fixed_senders(folder, change)
        return None if isinstance(change, Everyone) else change.of(rule)

    def _unset_main(self, tx: Tx) -> None:
        if (main := tx.groups.main()) is not None:
            tx.groups.save(replace(main, is_main=False))
            # It must not keep what only main may see.
            tx.after_commit(lambda: self._close_warm(main.chat))
            tx.after_commit(lambda: self._changed(main.folder))

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


def _works_differently(before: Group, after: Group) -> bool:
    return (before.agent, before.is_main, before.assistant_name) != (
        after.agent,
        after.is_main,
        after.assistant_name,
    )
