"""Forgetting a chat: its texts, sessions and memory, for good; how much it was stays known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import structlog

from hallporter.domain.errors import NotFoundError
from hallporter.domain.happening import TurnChanged
from hallporter.domain.ids import ChatId
from hallporter.domain.removal import Reason, Removal
from hallporter.switchboard.orphans import cut_short

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from hallporter.books import Tx
    from hallporter.domain.ids import Folder
    from hallporter.domain.turn import Turn
    from hallporter.ports import Clock, Engine, Feed, Store

log = structlog.get_logger(__name__)


class Belongings(Protocol):
    """What groups have in the home folder."""

    async def set_aside(self, folder: Folder) -> int:
        """Out of everyone's reach in one step; how many files."""
        ...

    async def destroy(self) -> None:
        """All that was set aside."""


class Forgetting:
    """The use case behind `forget`; a turn that runs is stopped first."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        feed: Feed,
        clock: Clock,
        evict: Callable[[ChatId], Awaitable[None]],
        belongings: Belongings,
    ) -> None:
        self._store = store
        self._engine = engine
        self._feed = feed
        self._clock = clock
        self._evict = evict
        self._belongings = belongings

    async def forget(self, chat: str) -> Removal:
        """Raises `NotFoundError`. Asking again is harmless, also after a forgetting cut short."""
        folder, counts = await self._store.write(lambda tx: self._forget_rows(tx, ChatId(chat)))
        files = await self._belongings.set_aside(folder) if folder is not None else 0
        # An agent that began before the folders were set aside still sees the old ones.
        await self._evict(ChatId(chat))
        await self._belongings.destroy()
        removal = Removal(
            at=self._clock.now(),
            reason=Reason.FORGET,
            chat=ChatId(chat),
            counts={**counts, "files": files},
        )
        await self._store.write(lambda tx: tx.removals.add(removal))
        log.info("chat.forgotten", chat=chat, **removal.counts)
        return removal

    def _forget_rows(self, tx: Tx, chat_id: ChatId) -> tuple[Folder | None, Mapping[str, int]]:
        if tx.chats.get(chat_id) is None:
            message = f"no chat {chat_id[:80]!r} is known: nothing was removed"
            raise NotFoundError(message, field="chat", value=chat_id[:80])
        chat = tx.chats.lock(chat_id)
        if (turn := tx.turns.open_in(chat_id)) is not None:
            self._stop(tx, turn)
        counts = tx.removals.forget(chat_id)
        forgotten = replace(chat.settled(chat.head), epoch=chat.epoch + 1, woken_at=None)
        tx.chats.save(forgotten.renewed())
        group = tx.groups.of_chat(chat_id)
        sessions = int(chat.session_id is not None)
        return (None if group is None else group.folder, {**counts, "sessions": sessions})

    def _stop(self, tx: Tx, turn: Turn) -> None:
        """Whoever still works writes under an epoch that no longer counts."""
        now = self._clock.now()
        cut_short(tx, turn, "the chat was forgotten", now)
        took = now - turn.started_at
        news = TurnChanged(chat=turn.chat, turn=turn.id, state="stopped", took=took)
        tx.after_commit(lambda: self._feed.publish(news))
        tx.after_commit(lambda: self._engine.signal(turn.chat, "stop"))
