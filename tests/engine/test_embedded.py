"""The engine in one process keeps running when the store does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import StoreUnavailableError
from hallporter.domain.ids import ChatId
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.ports import Signals, Store
from hallporter.stores.sqlite import open_store
from tests.fakes.clock import START, FakeClock

if TYPE_CHECKING:
    from hallporter.books import Tx

T = TypeVar("T")
CHAT = ChatId("fake:family")
PATIENCE = 5.0  # seconds


class AwayStore:
    """`ports.Store` that is away as long as a test wants it to be."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_away = False
        self.refused = asyncio.Event()

    async def write(self, fn: Callable[[Tx], T]) -> T:
        self._look()
        return await self._store.write(fn)

    async def read(self, fn: Callable[[Tx], T]) -> T:
        self._look()
        return await self._store.read(fn)

    async def scrub(self) -> bool:
        return await self._store.scrub()

    def _look(self) -> None:
        if self.is_away:
            self.refused.set()
            raise StoreUnavailableError("the disk is full")


async def test_a_store_that_is_away_during_a_sweep_does_not_end_the_turns_that_run(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    begun: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def run(_chat: ChatId, _signals: Signals) -> None:
        may_end = asyncio.Event()
        begun.put_nowait(may_end)
        await may_end.wait()

    async with asyncio.timeout(PATIENCE), open_store(tmp_path / "db", clock) as store:
        away = AwayStore(store)
        engine = EmbeddedEngine(store=away, clock=clock, pool_size=lambda _pool: 5)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.serve(run))
            seen = ChatSeen(chat=CHAT, channel="fake", at=START)
            await store.write(lambda tx: tx.chats.seen(seen))
            await store.write(lambda tx: engine.wake(tx, CHAT))
            may_end = await begun.get()

            away.is_away = True
            while not away.refused.is_set():  # the first sweep may still be under way
                clock.advance(timedelta(minutes=2))
                await store.read(lambda tx: tx.chats.woken())
            away.is_away = False
            may_end.set()
            await store.write(lambda tx: engine.wake(tx, CHAT))

            (await begun.get()).set()
            await engine.stop(timedelta(seconds=1))
