"""Forgetting a chat: its texts, sessions and memory, for good; how much it was stays known."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import structlog

from hallporter.domain.errors import HallporterError, NotFoundError, RefusedError
from hallporter.domain.happening import AccessChanged, ChatForgotten, TurnChanged
from hallporter.domain.ids import ChatId
from hallporter.domain.removal import Begun, Reason, Removal, together
from hallporter.switchboard.groups import removable
from hallporter.switchboard.orphans import cut_short

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from hallporter.books import Tx
    from hallporter.domain.group import Group
    from hallporter.domain.ids import Folder
    from hallporter.domain.turn import Turn
    from hallporter.ports import Clock, Engine, Feed, Store
    from hallporter.switchboard.scrubbing import Scrubbing

log = structlog.get_logger(__name__)


class Belongings(Protocol):
    """What groups have in the home folder."""

    async def set_aside(self, folders: Sequence[Folder]) -> None:
        """Out of everyone's reach, each in one step."""

    async def destroy(self) -> int:
        """All that was set aside; how many files. Raises `RefusedError` naming what cannot be
        removed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """`group` is the one that begins anew; without it nobody answers in the chat. `is_scrubbed`:
    whether no trace is left in the store's files yet."""

    removal: Removal
    group: Group | None
    is_scrubbed: bool


class Forgetting:
    """The use case behind `forget` and `groups remove --purge`; a turn that runs is stopped
    first."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        feed: Feed,
        clock: Clock,
        evict: Callable[[ChatId], Awaitable[None]],
        belongings: Belongings,
        scrubbing: Scrubbing,
        changed: Callable[[Folder], None],
    ) -> None:
        self._store = store
        self._engine = engine
        self._feed = feed
        self._clock = clock
        self._evict = evict
        self._belongings = belongings
        self._scrubbing = scrubbing
        self._changed = changed
        self._one_at_a_time = asyncio.Lock()

    async def forget(self, chat: str) -> Forgotten:
        """Raises `NotFoundError`, or `RefusedError` when a file cannot be removed. Asking again is
        harmless, also after a forgetting cut short."""
        return await self._forget(ChatId(chat), purges=False)

    async def purge(self, folder: str) -> Forgotten:
        """The group goes too, and last: as long as something is left, it can be named and purged
        again. Raises `ConflictError` for the main group."""
        group = await self._store.read(lambda tx: removable(tx, folder))
        return await self._forget(group.chat, purges=True)

    async def resume(self) -> None:
        """At a start: what a forgetting that was cut short has left."""
        for begun in await self._store.read(lambda tx: tx.removals.begun()):
            await self._finish(begun)
        try:
            await self._belongings.destroy()
        except RefusedError as error:
            log.warning("files.left", error=error.message)
        await self._scrubbing.scrub_if_owed()

    async def _finish(self, begun: Begun) -> None:
        chat, group = await self._store.read(
            lambda tx: (tx.chats.get(begun.chat), tx.groups.of_chat(begun.chat))
        )
        if chat is None or chat.head != begun.head:
            # What was said since, nobody has asked us to forget.
            log.warning("chat.half_forgotten", chat=begun.chat, do="forget it again")
            return
        is_main = group is not None and group.is_main
        try:
            await self._forget(begun.chat, purges=begun.purges and not is_main)
        except HallporterError as error:  # also a full disk: a house must open to be mended
            log.warning("chat.half_forgotten", chat=begun.chat, error=error.message)

    async def _forget(self, chat: ChatId, *, purges: bool) -> Forgotten:
        async with self._one_at_a_time:
            folders, counts = await self._store.write(
                lambda tx: self._begin(tx, chat, purges=purges)
            )
            await self._belongings.set_aside(folders)
            # An agent that began before the folders were set aside still sees the old ones.
            await self._evict(chat)
            files = await self._belongings.destroy()
            counts = together(counts, {"files": files})
            removal, group = await self._store.write(
                lambda tx: self._end(tx, chat, counts, purges=purges)
            )
            for folder in folders:
                self._changed(folder)
        log.info("chat.forgotten", chat=chat, **removal.counts)
        is_scrubbed = await self._scrubbing.scrub()
        return Forgotten(removal=removal, group=group, is_scrubbed=is_scrubbed)

    def _begin(
        self, tx: Tx, chat: ChatId, *, purges: bool
    ) -> tuple[Sequence[Folder], Mapping[str, int]]:
        """What is to follow is written down with it: no end of the host loses it."""
        counts = self._forget_rows(tx, chat)
        for before in tx.removals.begun():
            if before.chat == chat:
                counts = together(before.counts, counts)
        head = tx.chats.lock(chat).head
        tx.removals.begin(Begun(chat=chat, head=head, purges=purges, counts=counts))
        group = tx.groups.of_chat(chat)
        return [*tx.groups.left_by(chat), *([] if group is None else [group.folder])], counts

    def _end(
        self, tx: Tx, chat: ChatId, counts: Mapping[str, int], *, purges: bool
    ) -> tuple[Removal, Group | None]:
        group = tx.groups.of_chat(chat)
        if purges and group is not None:
            counts = together(counts, self._forget_rows(tx, chat))  # what was said meanwhile
            tx.groups.remove(removable(tx, group.folder).folder)
            tx.after_commit(lambda: self._feed.publish(AccessChanged()))
        tx.groups.forget_left(chat)
        tx.removals.finished(chat)
        removal = Removal(at=self._clock.now(), reason=Reason.FORGET, chat=chat, counts=counts)
        tx.removals.add(removal)
        return removal, tx.groups.of_chat(chat)

    def _forget_rows(self, tx: Tx, chat_id: ChatId) -> Mapping[str, int]:
        if tx.chats.get(chat_id) is None:
            message = f"no chat {chat_id[:80]!r} is known: nothing was removed"
            raise NotFoundError(message, field="chat", value=chat_id[:80])
        chat = tx.chats.lock(chat_id)
        if (turn := tx.turns.open_in(chat_id)) is not None:
            self._stop(tx, turn)
        counts = tx.removals.forget(chat_id)
        tx.removals.owe_scrub(self._clock.now())
        forgotten = replace(chat.settled(chat.head), epoch=chat.epoch + 1, woken_at=None)
        tx.chats.save(forgotten.renewed())
        tx.after_commit(lambda: self._feed.publish(ChatForgotten(chat=chat_id)))
        return {**counts, "sessions": int(chat.session_id is not None)}

    def _stop(self, tx: Tx, turn: Turn) -> None:
        """Whoever still works writes under an epoch that no longer counts."""
        now = self._clock.now()
        cut_short(tx, turn, "the chat was forgotten", now)
        took = now - turn.started_at
        news = TurnChanged(chat=turn.chat, turn=turn.id, state="stopped", took=took)
        tx.after_commit(lambda: self._feed.publish(news))
        tx.after_commit(lambda: self._engine.signal(turn.chat, "stop"))
