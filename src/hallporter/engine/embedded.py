"""The engine in one process: asyncio, the store's own rows, nothing else to run."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from hallporter.domain.errors import UnavailableError
from hallporter.engine.line import Line, Waiting, place_of
from hallporter.ports import EngineHealth

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hallporter.books import Tx
    from hallporter.domain.chat import Chat
    from hallporter.domain.ids import ChatId, Pool
    from hallporter.ports import Clock, Signals, Store

log = structlog.get_logger(__name__)

_SWEEP = timedelta(seconds=60)  # the safety net; wakes come by event
_AFTER_CRASH = timedelta(seconds=5)  # before a turn that could not be recorded runs again


class TurnSignals:
    """`ports.Signals` by an event."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._changed = asyncio.Event()

    def send(self, kind: str) -> None:
        """Wake the turn; the same signal twice is one."""
        self._kinds.add(kind)
        self._changed.set()

    async def wait(self) -> frozenset[str]:
        await self._changed.wait()
        self._changed.clear()
        kinds = frozenset(self._kinds)
        self._kinds.clear()
        return kinds


@dataclass(slots=True)
class _Busy:
    """A chat whose turn runs; `then` is its next place in the line, if it was woken meanwhile."""

    signals: TurnSignals = field(default_factory=TurnSignals)
    then: Waiting | None = None


class EmbeddedEngine:
    """`ports.Engine`: one turn per chat, pools of slots, oldest waiting first."""

    def __init__(self, *, store: Store, clock: Clock, pool_size: Callable[[Pool], int]) -> None:
        self._store = store
        self._clock = clock
        self._pool_size = pool_size
        self._line = Line()
        self._busy: dict[ChatId, _Busy] = {}
        self._in_use: dict[Pool, int] = {}
        self._poked = asyncio.Event()
        self._drained = asyncio.Event()
        self._cut = asyncio.Event()
        self._is_serving = False
        self._is_stopping = False

    # --- what the others call ---------------------------------------------------------------

    def wake(self, tx: Tx, chat: ChatId, not_before: datetime | None = None) -> None:
        row = tx.chats.lock(chat).woken(self._clock.now(), not_before)
        tx.chats.save(row)
        tx.after_commit(lambda: self._join(row))

    def ring(self, tx: Tx, chat: ChatId) -> None:
        row = tx.chats.lock(chat).rung(self._clock.now())
        tx.chats.save(row)
        tx.after_commit(lambda: self._join(row))

    def signal(self, chat: ChatId, kind: str) -> None:
        if (busy := self._busy.get(chat)) is not None:
            busy.signals.send(kind)

    def health(self) -> EngineHealth:
        oldest = self._line.oldest()
        return EngineHealth(
            ok=self._is_serving and not self._is_stopping,
            why="" if self._is_serving else "the engine is not running",
            waiting=len(self._line),
            running=len(self._busy),
            oldest_wait=None if oldest is None else self._clock.now() - oldest,
            # Copied first: transactions ask too (/status), on the store's thread.
            pools={pool: (n, self._pool_size(pool)) for pool, n in list(self._in_use.items())},
        )

    async def stop(self, drain: timedelta) -> None:
        self._is_stopping = True
        self._poked.set()
        if not self._is_serving:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(drain.total_seconds()):
                await self._drained.wait()
        self._cut.set()

    # --- its own life -----------------------------------------------------------------------

    async def serve(self, run: Callable[[ChatId, Signals], Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as turns:
            sweeper = turns.create_task(self._sweep(), name="engine:sweep")
            self._is_serving = True
            running: set[asyncio.Task[None]] = set()
            while not self._is_stopping:
                self._poked.clear()
                while (entry := self._line.take(self._clock.now(), self._has_room)) is not None:
                    # Busy from this moment on: a wake before the task's first step must not
                    # give the chat a second place in the line.
                    self._in_use[entry.pool] = self._in_use.get(entry.pool, 0) + 1
                    busy = self._busy[entry.chat] = _Busy()
                    turn = self._turn(entry, busy, run)
                    task = turns.create_task(turn, name=f"turn:{entry.chat}")
                    running.add(task)
                    task.add_done_callback(running.discard)
                await self._rest(turns)
            sweeper.cancel()
            cut = turns.create_task(self._cut.wait(), name="engine:cut")
            while running and not cut.done():
                ends: set[asyncio.Task[Any]] = {*running, cut}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            self._drained.set()
            for task in running:
                task.cancel()
            cut.cancel()
        self._is_serving = False

    async def _rest(self, tasks: asyncio.TaskGroup) -> None:
        ripe = self._line.next_ripe()
        alarm = None if ripe is None else tasks.create_task(self._alarm(ripe), name="engine:alarm")
        await self._poked.wait()
        if alarm is not None:
            alarm.cancel()

    async def _alarm(self, at: datetime) -> None:
        await self._clock.sleep(max(timedelta(0), at - self._clock.now()))
        self._poked.set()

    async def _turn(
        self,
        entry: Waiting,
        busy: _Busy,
        run: Callable[[ChatId, Signals], Awaitable[None]],
    ) -> None:
        try:
            await run(entry.chat, busy.signals)
        except Exception:  # the turn border: one chat's trouble is never its neighbours'
            log.exception("turn.crashed", chat=entry.chat)
            again = self._clock.now() + _AFTER_CRASH
            busy.then = Waiting(
                chat=entry.chat, pool=entry.pool, since=entry.since, not_before=again
            )
        finally:
            del self._busy[entry.chat]
            self._in_use[entry.pool] -= 1
            if busy.then is not None:
                self._line.join(busy.then)
            self._poked.set()

    def _has_room(self, pool: Pool) -> bool:
        return self._in_use.get(pool, 0) < self._pool_size(pool)

    def _join(self, chat: Chat) -> None:
        if (entry := place_of(chat)) is None:
            return
        if (busy := self._busy.get(chat.id)) is not None:
            busy.then = entry
            busy.signals.send("more")
            return
        self._line.join(entry)
        self._poked.set()

    async def _sweep(self) -> None:
        while True:
            try:
                await self._look_around()
            except UnavailableError as error:
                # The store is away for a while; turns that run must not fall with the net.
                log.warning("engine.sweep_failed", error=error.message)
            await self._clock.sleep(_SWEEP)

    async def _look_around(self) -> None:
        for chat in await self._store.read(lambda tx: tx.chats.woken()):
            if chat.id not in self._busy and chat.id not in self._line:
                self._join(chat)
        forgotten = await self._store.read(lambda tx: tx.chats.forgotten())
        for chat_id in forgotten:
            if chat_id not in self._busy:
                log.warning("chat.was_forgotten", chat=chat_id)
                await self._store.write(lambda tx, chat=chat_id: self.wake(tx, chat))  # type: ignore[misc]
        unheard = await self._store.read(lambda tx: tx.chats.unheard())
        for chat_id in unheard:
            if chat_id not in self._busy:
                log.warning("tick.was_forgotten", chat=chat_id)
                await self._store.write(lambda tx, chat=chat_id: self.ring(tx, chat))  # type: ignore[misc]
