"""How punctual ticks are among many tasks, and what tasks cost that wait."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bench.figures import Figure, sampled
from bench.footprint import burnt
from bench.host import PATIENCE, chat_of, folder_of, furnish, running
from hallporter.clock import SystemClock
from hallporter.domain.ids import TaskId
from hallporter.domain.schedule import Schedule, Type
from hallporter.domain.task import ContextMode, Misfire, Status, Task
from hallporter.home import open_home
from hallporter.stores.sqlite import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import httpx

    from hallporter.books import Tx

TASKS = 10_000
GROUPS = 50
GOAL_LATE = 50.0  # milliseconds
GOAL_COST = 0.3  # percent of a core that waiting tasks may cost
_AHEAD = timedelta(seconds=15)  # for the host to start and to settle
_APART = timedelta(milliseconds=600)  # so that no tick waits for another one's sandbox


async def measure(folder: Path, rounds: int, seconds: float) -> Sequence[Figure]:
    """So many of the tasks come due one by one; the others only wait."""
    punctual = await _punctuality(folder / "ticks", rounds)
    waiting, none = await _cost(folder, seconds)
    return [
        sampled(
            "tick.late",
            f"due → the tick is taken up, {TASKS:,} tasks",
            "ms",
            punctual,
            at_most=GOAL_LATE,
        ),
        Figure(key="cpu.tasks", what=f"idle CPU, {TASKS:,} tasks", unit="%", value=waiting),
        Figure(
            key="cpu.tasks.above",
            what="— above a host with none",
            unit="%",
            value=waiting - none,
            at_most=GOAL_COST,
        ),
    ]


async def _punctuality(home: Path, rounds: int) -> Sequence[float]:
    await furnish(home, GROUPS)
    first = SystemClock().now() + _AHEAD
    due = [first + number * _APART for number in range(rounds)]
    await _schedule(home, due)
    async with running(home) as host, host.client() as client:
        await asyncio.sleep((due[-1] - SystemClock().now()).total_seconds())
        return [await _lateness(client, number) for number in range(rounds)]


async def _lateness(client: httpx.AsyncClient, number: int) -> float:
    """Milliseconds."""
    async with asyncio.timeout(PATIENCE):
        while True:
            ticks = (await client.get(f"/api/tasks/bench-{number}/ticks")).json()["data"]
            if ticks and "started" in ticks[0]:
                started, due = (datetime.fromisoformat(ticks[0][key]) for key in ("started", "due"))
                return (started - due) / timedelta(milliseconds=1)
            await asyncio.sleep(0.05)


async def _cost(folder: Path, seconds: float) -> tuple[float, float]:
    """Side by side: with all tasks far away, and without any."""
    busy, bare = folder / "ticks-waiting", folder / "ticks-none"
    async with contextlib.AsyncExitStack() as stack:
        pids = []
        for home, due in ((busy, [SystemClock().now() + timedelta(hours=6)]), (bare, None)):
            await furnish(home, GROUPS)
            if due is not None:
                await _schedule(home, due)
            pids.append((await stack.enter_async_context(running(home))).pid)
        await asyncio.sleep(3.0)
        waiting, none = await burnt(pids, seconds)
    return waiting, none


async def _schedule(home: Path, due: Sequence[datetime]) -> None:
    """One task for each of these times, and the rest of the many a day later."""
    clock = SystemClock()
    now = clock.now()

    def put(tx: Tx) -> None:
        for number in range(TASKS):
            is_soon = number < len(due)
            at = due[number] if is_soon else now + timedelta(days=1, seconds=number)
            schedule = Schedule(
                type=Type.ONCE,
                value=at.replace(tzinfo=None).isoformat(),
                timezone="UTC",
            )
            tx.tasks.add(
                Task(
                    id=TaskId(f"bench-{number}"),
                    folder=folder_of(number % GROUPS),
                    chat=chat_of(number % GROUPS),
                    prompt="once",
                    schedule=schedule,
                    context_mode=ContextMode.ISOLATED,
                    misfire=Misfire.ONCE,
                    status=Status.ACTIVE,
                    anchor=now,
                    next_at=at,
                    created_at=now,
                    created_by="bench",
                )
            )

    async with open_store(open_home(home).database, clock) as store:
        await store.write(put)
