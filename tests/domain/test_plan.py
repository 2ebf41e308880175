from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.ids import ChatId, Folder, TaskId
from hallporter.domain.plan import MAX_MISSED, MAX_WAITING, plan
from hallporter.domain.schedule import Schedule, Type, parse_schedule
from hallporter.domain.task import LATE_AFTER, ContextMode, Misfire, Status, Task

MIDNIGHT = datetime(2026, 2, 19, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def task(value: str = "0 * * * *", kind: Type = Type.CRON, misfire: Misfire = Misfire.ONCE) -> Task:
    return Task(
        id=TaskId("task_1"),
        folder=Folder("family"),
        chat=ChatId("fake:family"),
        prompt="Say the time.",
        schedule=Schedule(type=kind, value=value, timezone="UTC"),
        context_mode=ContextMode.GROUP,
        misfire=misfire,
        status=Status.ACTIVE,
        anchor=MIDNIGHT,
        next_at=MIDNIGHT,
        created_at=MIDNIGHT,
        created_by="family",
    )


def hours(*states: str) -> list[tuple[int, str]]:
    return list(enumerate(states))


def seen(task: Task, now: datetime, waiting: int = 0) -> list[tuple[int, str]]:
    ticks = plan(task, now, waiting=waiting).ticks
    return [((tick.due - MIDNIGHT) // HOUR, tick.state) for tick in ticks]


def test_a_tick_on_time_is_due_and_says_nothing() -> None:
    made = plan(task(), MIDNIGHT)
    (tick,) = made.ticks
    assert (tick.due, tick.state, tick.why) == (MIDNIGHT, "due", "")
    assert (made.next_at, made.status) == (MIDNIGHT + HOUR, "active")


def test_before_its_time_nothing_is_written() -> None:
    made = plan(task(), MIDNIGHT - timedelta(microseconds=1))
    assert (made.ticks, made.next_at) == ((), MIDNIGHT)


@pytest.mark.parametrize("misfire", Misfire)
def test_a_tick_that_is_hardly_late_is_no_misfire(misfire: Misfire) -> None:
    assert seen(task(misfire=misfire), MIDNIGHT + LATE_AFTER) == hours("due")


@pytest.mark.parametrize(
    ("misfire", "behind", "states"),
    [
        (Misfire.ONCE, 2 * MINUTE, hours("due")),
        (Misfire.SKIP, 2 * MINUTE, hours("skipped")),
        (Misfire.ALL, 2 * MINUTE, hours("due")),
        (Misfire.ONCE, 3 * HOUR - MINUTE, hours("skipped", "skipped", "due")),
        (Misfire.SKIP, 3 * HOUR - MINUTE, hours("skipped", "skipped", "skipped")),
        (Misfire.ALL, 3 * HOUR - MINUTE, hours("due", "due", "due")),
        # The last one is on time: it makes up for the others.
        (Misfire.ONCE, 2 * HOUR, hours("skipped", "skipped", "due")),
        (Misfire.SKIP, 2 * HOUR, hours("skipped", "skipped", "due")),
        (Misfire.ALL, 2 * HOUR, hours("due", "due", "due")),
    ],
)
def test_missed_ticks_go_by_what_the_task_says(
    misfire: Misfire, behind: timedelta, states: list[tuple[int, str]]
) -> None:
    assert seen(task(misfire=misfire), MIDNIGHT + behind) == states


def test_every_row_says_why() -> None:
    now = MIDNIGHT + 2 * HOUR + 30 * MINUTE
    ticks = plan(task(), now).ticks
    instead = (
        "missed: nobody was there to start it; the one of 2026-02-19 02:00:00 UTC runs instead"
    )
    assert [tick.why for tick in ticks] == [
        instead,
        instead,
        "missed: nobody was there to start it",
    ]


@pytest.mark.parametrize("misfire", Misfire)
def test_what_is_beyond_the_cap_is_counted_by_the_oldest_row(misfire: Misfire) -> None:
    made = plan(task(misfire=misfire), MIDNIGHT + 30 * timedelta(days=1) + 30 * MINUTE)
    assert len(made.ticks) == MAX_MISSED
    told = "621 earlier ones, from 2026-02-19 00:00:00 UTC on, were missed too"
    assert told in made.ticks[0].why
    assert not any("earlier ones" in tick.why for tick in made.ticks[1:])


@pytest.mark.parametrize(
    ("misfire", "waiting", "states"),
    [
        (Misfire.ONCE, 1, hours("skipped", "skipped")),
        (Misfire.SKIP, 1, hours("skipped", "skipped")),
        (Misfire.ALL, 1, hours("due", "due")),
        (Misfire.ALL, MAX_WAITING - 1, hours("due", "skipped")),
        (Misfire.ALL, MAX_WAITING, hours("skipped", "skipped")),
    ],
)
def test_a_task_slower_than_its_schedule_does_not_fill_the_line(
    misfire: Misfire, waiting: int, states: list[tuple[int, str]]
) -> None:
    made = seen(task(misfire=misfire), MIDNIGHT + HOUR, waiting)
    last = plan(task(misfire=misfire), MIDNIGHT + HOUR, waiting=waiting).ticks[-1]
    assert made == states
    if last.state == "skipped":
        assert last.why == "earlier ticks of this task still wait"


def test_of_several_that_come_at_once_the_last_stands_for_all() -> None:
    quick = task("1000", Type.INTERVAL)
    ticks = plan(quick, MIDNIGHT + timedelta(seconds=2)).ticks
    assert [tick.state for tick in ticks] == ["skipped", "skipped", "due"]
    assert ticks[0].why == "the one of 2026-02-19 00:00:02 UTC runs instead"


@pytest.mark.parametrize(("misfire", "state"), [("once", "due"), ("skip", "skipped")])
def test_a_single_time_is_over_with_its_tick(misfire: str, state: str) -> None:
    single = task("2026-02-19T00:00:00", Type.ONCE, Misfire(misfire))
    made = plan(single, MIDNIGHT + HOUR)
    assert [tick.state for tick in made.ticks] == [state]
    assert (made.next_at, made.status) == (None, "completed")


def test_a_task_whose_zone_is_gone_is_paused_and_its_tick_says_so() -> None:
    lost = task()
    lost = replace(lost, schedule=replace(lost.schedule, timezone="Atlantis/Harbour"))
    made = plan(lost, MIDNIGHT)
    (tick,) = made.ticks
    assert (tick.state, made.status, made.next_at) == ("failed", "paused", None)
    assert "'Atlantis/Harbour' is no time zone" in tick.why


@given(
    misfire=st.sampled_from(Misfire),
    value=st.sampled_from(["* * * * *", "*/15 * * * *", "0 0 * * *", "1000", "90000"]),
    behind=st.timedeltas(timedelta(0), timedelta(days=2)),
    waiting=st.integers(0, 3),
)
def test_each_tick_has_one_row_and_the_next_time_is_ahead(
    misfire: Misfire, value: str, behind: timedelta, waiting: int
) -> None:
    kind = Type.INTERVAL if value.isdigit() else Type.CRON
    parse_schedule(kind, value, "UTC", MIDNIGHT)
    now = MIDNIGHT + behind
    made = plan(task(value, kind, misfire), now, waiting=waiting)
    dues = [tick.due for tick in made.ticks]
    assert dues == sorted(set(dues))
    assert MIDNIGHT <= dues[0] <= dues[-1] <= now
    assert made.next_at is not None
    assert now < made.next_at
    running = [tick for tick in made.ticks if tick.state == "due"]
    assert len(running) <= (MAX_WAITING if misfire is Misfire.ALL else 1)
