"""What one look at the clock writes about a task: the ticks that have come, and its next time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.domain.crowd import CROWDED
from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.schedule import Type, due_times, next_due
from hallporter.domain.task import LATE_AFTER, Misfire, Status, Task, Tick, TickState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hallporter.domain.schedule import DueTimes

MAX_MISSED = 100  # ticks of a task that get rows at one look; older ones are counted
MAX_WAITING = 100  # ticks of a task that may wait to run

_MISSED = "missed: nobody was there to start it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """To be written together: rows for the ticks, and where the task stands from then on."""

    ticks: tuple[Tick, ...]
    next_at: datetime | None
    status: Status


def plan(task: Task, now: datetime, *, waiting: int = 0) -> Plan:
    """For a task whose next time may have come; `waiting` is how many of its ticks are due and not
    taken up. Every time that has come gets a row; of the rows, `misfire` says which will run."""
    if task.next_at is None or task.next_at > now:
        return Plan(ticks=(), next_at=task.next_at, status=task.status)
    try:
        return _plan(task, task.next_at, now, waiting)
    except InvalidRequestError as error:
        # A zone can vanish with an upgrade of the machine; that is one task's trouble only.
        why = f"its next time cannot be told, so the task is paused: {error.message}"
        tick = Tick(task=task.id, due=task.next_at, chat=task.chat, state=TickState.FAILED, why=why)
        return Plan(ticks=(tick,), next_at=None, status=Status.PAUSED)


def _plan(task: Task, first: datetime, now: datetime, waiting: int) -> Plan:
    due = due_times(task.schedule, first=first, until=now, keep=MAX_MISSED)
    wanted = _wanted(task.misfire, due.newest, now)
    # A task that is slower than its schedule must not fill its chat's line for ever.
    room = max(0, (MAX_WAITING if task.misfire is Misfire.ALL else 1) - waiting)
    running = wanted[:room]
    ticks = [
        Tick(
            task=task.id,
            due=at,
            chat=task.chat,
            state=TickState.DUE if at in running else TickState.SKIPPED,
            why=_why(at, now, wanted, running),
        )
        for at in due.newest
    ]
    following = next_due(task.schedule, anchor=task.anchor, after=now)
    is_over = task.schedule.type is Type.ONCE or following is None
    return Plan(
        ticks=(_counted(ticks[0], due, first), *ticks[1:]),
        next_at=None if is_over else following,
        status=Status.COMPLETED if is_over else task.status,
    )


def _wanted(misfire: Misfire, times: Sequence[datetime], now: datetime) -> Sequence[datetime]:
    if misfire is Misfire.ALL:
        return times
    # Of several that came at once, the last stands for all.
    last = times[-1]
    return (last,) if misfire is Misfire.ONCE or _is_on_time(last, now) else ()


def _is_on_time(due: datetime, now: datetime) -> bool:
    return now - due <= LATE_AFTER


def _why(
    at: datetime, now: datetime, wanted: Sequence[datetime], running: Sequence[datetime]
) -> str:
    missed = "" if _is_on_time(at, now) else _MISSED
    if at in running:
        return missed
    if at in wanted:
        return CROWDED
    if running:
        return "; ".join(filter(None, (missed, f"the one of {_shown(running[-1])} runs instead")))
    return missed or CROWDED


def _counted(tick: Tick, due: DueTimes, first: datetime) -> Tick:
    """Every missed time is accounted for, if not each by a row of its own."""
    if not due.earlier:
        return tick
    count = f"{'more than ' if due.is_more else ''}{due.earlier:,}"
    told = f"{count} earlier ones, from {_shown(first)} on, were missed too"
    return replace(tick, why="; ".join(filter(None, (tick.why, told))))


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
