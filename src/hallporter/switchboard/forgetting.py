"""Forgetting a chat: its texts, sessions and memory, for good; how much it was stays known."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import structlog

from hallporter.domain.errors import NotFoundError, RefusedError
from hallporter.domain.happening import TurnChanged
from hallporter.domain.ids import ChatId
from hallporter.domain.removal import Reason, Removal
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

        def end(tx: Tx) -> Group | None:
            tx.groups.forget_left(ChatId(chat))
            return tx.groups.of_chat(ChatId(chat))

        return await self._forget(ChatId(chat), end)

    async def purge(self, folder: str) -> Forgotten:
        """The group goes too, and last: as long as something is left, it can be named and purged
        again. Raises `ConflictError` for the main group."""
        group = await self._store.read(lambda tx: removable(tx, folder))

        def end(tx: Tx) -> Group | None:
            gone = removable(tx, folder)
            self._forget_rows(tx, gone.chat)  # what was said meanwhile
            tx.groups.forget_left(gone.chat)
            tx.groups.remove(gone.folder)
            return None

        return await self._forget(group.chat, end)

    async def resume(self) -> None:
        """At a start: what a forgetting that was cut short has left."""
        try:
            await self._belongings.destroy()
        except RefusedError as error:
            log.warning("files.left", error=error.message)
        await self._scrubbing.scrub_if_owed()

    async def _forget(self, chat: ChatId, end: Callable[[Tx], Group | None]) -> Forgotten:
        async with self._one_at_a_time:
            folders, counts = await self._store.write(lambda tx: self._forget_rows(tx, chat))
            await self._belongings.set_aside(folders)
            # An agent that began before the folders were set aside still sees the old ones.
            await self._evict(chat)
            files = await self._belongings.destroy()
            removal = Removal(
                at=self._clock.now(),
                reason=Reason.FORGET,
                chat=chat,
                counts={**counts, "files": files},
            )

            def fn(tx: Tx) -> Group | None:
                tx.removals.add(removal)
                return end(tx)

            group = await self._store.write(fn)
            for folder in folders:
                self._changed(folder)
        log.info("chat.forgotten", chat=chat, **removal.counts)
        is_scrubbed = await self._scrubbing.scrub()
        return Forgotten(removal=removal, group=group, is_scrubbed=is_scrubbed)

    def _forget_rows(self, tx: Tx, chat_id: ChatId) -> tuple[Sequence[Folder], Mapping[str, int]]:
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
        group = tx.groups.of_chat(chat_id)
        folders = [*tx.groups.left_by(chat_id), *([] if group is None else [group.folder])]
        sessions = int(chat.session_id is not None)
        return folders, {**counts, "sessions": sessions}

    def _stop(self, tx: Tx, turn: Turn) -> None:
        """Whoever still works writes under an epoch that no longer counts."""
        now = self._clock.now()
        cut_short(tx, turn, "the chat was forgotten", now)
        took = now - turn.started_at
        news = TurnChanged(chat=turn.chat, turn=turn.id, state="stopped", took=took)
        tx.after_commit(lambda: self._feed.publish(news))
        tx.after_commit(lambda: self._engine.signal(turn.chat, "stop"))
