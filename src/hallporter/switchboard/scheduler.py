"""The scheduler: writes a row for every tick when its time has come, and rings its chat."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.crowd import CROWDED, folded
from hallporter.domain.errors import HallporterError, InvalidRequestError
from hallporter.domain.plan import Plan, plan
from hallporter.domain.schedule import next_due
from hallporter.domain.task import LATE_AFTER, MAX_TICKS, TickState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.ids import Folder
    from hallporter.domain.task import Task, Tick
    from hallporter.ports import Clock, Engine, Store

log = structlog.get_logger(__name__)

_AT_ONCE = 50  # tasks in one transaction: nobody's message waits long behind it
_GLANCE = timedelta(seconds=1)  # at the wall clock, which may jump; asks nobody but the clock
_AFTER_TROUBLE = timedelta(seconds=1)  # before a store that was away is asked again


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    task: Task  # as it was when the plan was made
    plan: Plan


class Scheduler:
    """Several may share a store: a tick's row and its task's next time are one transaction, and a
    tick has one row. `changed` is told of folders whose tasks have moved on."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        clock: Clock,
        changed: Callable[[Folder], None],
    ) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._changed = changed
        self._poked = asyncio.Event()
        self._latest = clock.now()  # that the clock has shown since it was last put back
        self._is_reckoned = False

    def poke(self) -> None:
        """A next time may be nearer than was known."""
        self._poked.set()

    async def serve(self) -> None:
        """For ever."""
        while True:
            self._poked.clear()
            try:
                if not self._is_reckoned:
                    self._latest = self._clock.now()
                    await self.reckon()
                    self._is_reckoned = True
                next_at = await self.look()
            except HallporterError as error:
                log.warning("scheduler.paused", error=error.message)
                next_at = self._clock.now() + _AFTER_TROUBLE
            await self._rest(next_at)

    async def reckon(self) -> None:
        """Put right what a clock that was ahead, or other rules of a time zone, have left behind:
        next times that are not the next ones. A time that has its row does not come again."""
        moved = await self._store.read(partial(_misplaced, now=self._clock.now()))
        if moved:
            log.warning("scheduler.reckoned", tasks=len(moved))
            await self._store.write(partial(self._fire_all, planned=moved))

    async def look(self) -> datetime | None:
        """Write what has come due; the nearest time that a task waits for."""
        while True:
            now = self._clock.now()
            planned, next_at = await self._store.read(partial(_planned, now=now))
            if not planned:
                return next_at
            await self._store.write(partial(self._fire_all, planned=planned))

    def _fire_all(self, tx: Tx, planned: Sequence[_Planned]) -> None:
        for one in planned:
            self._fire(tx, one)

    def _fire(self, tx: Tx, planned: _Planned) -> None:
        task = tx.tasks.get(planned.task.id)
        if task is None or not _is_as_planned(task, planned.task):
            return  # changed or fired since: the next look sees it as it is now
        for tick in planned.plan.ticks:
            if _folds(tx, tick):
                continue
            # Only a clock that was put back, or another host, can have written it before.
            if tx.tasks.add_tick(tick):
                tx.after_commit(partial(_log, tick))
                if tick.state is TickState.DUE:
                    self._engine.ring(tx, tick.chat)
        tx.tasks.prune_ticks(task.id, MAX_TICKS)
        tx.tasks.save(replace(task, next_at=planned.plan.next_at, status=planned.plan.status))
        tx.after_commit(partial(self._changed, task.folder))

    async def _rest(self, next_at: datetime | None) -> None:
        if next_at is None:
            await self._poked.wait()
            return
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch(next_at), name="scheduler:clock")
            await self._poked.wait()
            watching.cancel()

    async def _watch(self, at: datetime) -> None:
        while (now := self._clock.now()) < at:
            if now < self._latest - LATE_AFTER:
                self._is_reckoned = False
                break
            self._latest = max(now, self._latest)
            await self._clock.sleep(min(at - now, _GLANCE))
        self._poked.set()


def _planned(tx: Tx, now: datetime) -> tuple[Sequence[_Planned], datetime | None]:
    """Beside the writer: after a long absence it takes a while."""
    due = tx.tasks.due(now, _AT_ONCE)
    planned = [
        _Planned(task=task, plan=plan(task, now, waiting=tx.tasks.waiting(task))) for task in due
    ]
    return planned, None if planned else tx.tasks.next_at()


def _misplaced(tx: Tx, now: datetime) -> Sequence[_Planned]:
    return [
        _Planned(task=task, plan=Plan(ticks=(), next_at=at, status=task.status))
        for task in tx.tasks.all()
        if task.next_at is not None
        and task.next_at > now
        and (at := _true_next(task, now)) not in (None, task.next_at)
    ]


def _true_next(task: Task, now: datetime) -> datetime | None:
    try:
        return next_due(task.schedule, anchor=task.anchor, after=now)
    except InvalidRequestError:
        return None  # its plan will say so when the time comes


def _folds(tx: Tx, tick: Tick) -> bool:
    """Whether an earlier row now tells of this tick too."""
    if tick.why != CROWDED:
        return False
    newest = tx.tasks.ticks(tick.task, 2)
    one = folded(tick, newest)
    return one is not None and tx.tasks.move_tick(newest[0], one)


def _is_as_planned(task: Task, planned: Task) -> bool:
    """Whatever else was written since, such as a run's end, has no say in when it is due."""
    return (task.next_at, task.schedule, task.misfire) == (
        planned.next_at,
        planned.schedule,
        planned.misfire,
    )


def _log(tick: Tick) -> None:
    event = "tick.fired" if tick.state is TickState.DUE else "tick.skipped"
    log.info(event, task=tick.task, due=tick.due, why=tick.why)
