"""One row per tick, whoever looks, however often, and whatever the clock does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import pytest

from hallporter.books import Tx
from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import StoreUnavailableError
from hallporter.domain.group import Group
from hallporter.domain.ids import ChatId, Folder
from hallporter.domain.task import MAX_TICKS, Task, Tick
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.ports import Store
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.scheduler import Scheduler
from hallporter.switchboard.tasks import NewTask, Tasks
from tests.fakes.clock import START, FakeClock
from tests.fakes.ids import counting_id

T = TypeVar("T")

CHAT = ChatId("fake:family")
PATIENCE = 5.0  # seconds
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class WatchedClock(FakeClock):
    """Knows who sleeps, and for how long at most."""

    def __init__(self, now: datetime = START) -> None:
        super().__init__(now)
        self.sleepers = 0
        self.longest = timedelta(0)

    async def sleep(self, delay: timedelta) -> None:
        self.sleepers += 1
        self.longest = max(self.longest, delay)
        try:
            await super().sleep(delay)
        finally:
            self.sleepers -= 1

    def put(self, now: datetime) -> None:
        """As someone sets a clock; then a second passes, and those who sleep for one wake up."""
        self._now = now
        while self._sleepers:
            self._sleepers.pop()[2].set()


@dataclass(kw_only=True)
class Watched:
    """A store that counts who asks it, and may be away."""

    store: SqliteStore
    reads: int = 0
    writes: int = 0
    is_away: bool = False
    before_write: Callable[[], Awaitable[None]] | None = None

    async def read(self, fn: Callable[[Tx], T]) -> T:
        self.reads += 1
        if self.is_away:
            raise StoreUnavailableError("away")
        return await self.store.read(fn)

    async def write(self, fn: Callable[[Tx], T]) -> T:
        self.writes += 1
        if (first := self.before_write) is not None:
            self.before_write = None
            await first()
        return await self.store.write(fn)

    async def scrub(self) -> bool:
        return await self.store.scrub()


@dataclass(kw_only=True)
class Tower:
    """One host's scheduler, with the tasks of one group."""

    store: Watched
    clock: WatchedClock
    scheduler: Scheduler
    tasks: Tasks
    changed: list[str] = field(default_factory=list)

    async def add(self, kind: str, value: str, **more: str) -> Task:
        more.setdefault("timezone", "UTC")
        new = NewTask(
            folder="family",
            prompt="Say the time.",
            schedule_type=kind,
            schedule_value=value,
            created_by="family",
            **more,
        )
        return await self.tasks.add(new)

    async def ticks(self, task: Task) -> list[Tick]:
        return list(reversed(await self.tasks.ticks(task.id, 100_000)))

    async def dues(self, task: Task) -> list[datetime]:
        return [tick.due for tick in await self.ticks(task)]

    async def states(self, task: Task) -> list[str]:
        return [tick.state for tick in await self.ticks(task)]

    async def until(self, condition: Callable[[], object]) -> None:
        """What happens here happens on other threads too: look until it is so."""
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.001)

    async def settle(self) -> None:
        """What was set off has happened: several steps of the loop and of the store."""
        for _ in range(20):
            await self.store.store.read(lambda tx: tx.tasks.next_at())


def found_family(tx: Tx) -> None:
    tx.chats.seen(ChatSeen(chat=CHAT, channel="fake", at=START))
    if tx.groups.of_chat(CHAT) is None:
        group = Group(
            chat=CHAT,
            name="Family",
            folder=Folder("family"),
            trigger="@Andy",
            requires_trigger=False,
            is_main=True,
            added_at=START,
        )
        tx.groups.add(group)


@contextlib.asynccontextmanager
async def open_tower(path: Path, clock: WatchedClock) -> AsyncIterator[Tower]:
    async with open_store(path / "hallporter.db", clock) as store:
        await store.write(found_family)
        watched = Watched(store=store)
        changed: list[str] = []
        port: Store = watched
        engine = EmbeddedEngine(store=port, clock=clock, pool_size=lambda _pool: 5)
        scheduler = Scheduler(store=port, engine=engine, clock=clock, changed=changed.append)
        yield Tower(
            store=watched,
            clock=clock,
            scheduler=scheduler,
            tasks=Tasks(
                store=port,
                engine=engine,
                clock=clock,
                new_id=counting_id,
                timezone="Europe/Berlin",
                poke=scheduler.poke,
                changed=changed.append,
            ),
            changed=changed,
        )


@pytest.fixture
async def tower(tmp_path: Path) -> AsyncIterator[Tower]:
    async with open_tower(tmp_path, WatchedClock()) as opened:
        yield opened


@contextlib.asynccontextmanager
async def serving(*towers: Tower) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(tower.scheduler.serve()) for tower in towers]
        for tower in towers:
            await tower.settle()
        yield
        for task in running:
            task.cancel()


# --- a look --------------------------------------------------------------------------------------


async def test_a_due_tick_has_its_row_its_chat_is_rung_and_the_task_moves_on(
    tower: Tower,
) -> None:
    task = await tower.add("interval", "60000")
    tower.clock.advance(MINUTE)
    tower.changed.clear()

    next_at = await tower.scheduler.look()

    (tick,) = await tower.ticks(task)
    chat = await tower.store.read(lambda tx: tx.chats.get(CHAT))
    assert (tick.due, tick.state, tick.chat) == (START + MINUTE, "due", CHAT)
    assert chat is not None
    assert chat.due_at is not None
    assert (await tower.tasks.get(task.id)).next_at == next_at == START + 2 * MINUTE
    assert tower.changed == ["family"]


async def test_a_look_too_early_writes_nothing(tower: Tower) -> None:
    task = await tower.add("interval", "60000")
    tower.clock.advance(MINUTE - timedelta(microseconds=1))
    tower.store.writes = 0

    assert await tower.scheduler.look() == START + MINUTE

    assert await tower.ticks(task) == []
    assert tower.store.writes == 0


async def test_a_single_time_is_completed_when_its_tick_is_written(tower: Tower) -> None:
    task = await tower.add("once", "2026-02-19T10:01:00")
    tower.clock.advance(MINUTE)

    assert await tower.scheduler.look() is None

    assert await tower.states(task) == ["due"]
    done = await tower.tasks.get(task.id)
    assert (done.status, done.next_at) == ("completed", None)


async def test_more_tasks_than_fit_into_one_transaction_are_all_served(tower: Tower) -> None:
    tasks = [await tower.add("once", "2026-02-19T10:01:00") for _ in range(120)]
    tower.clock.advance(MINUTE)

    assert await tower.scheduler.look() is None

    assert [await tower.states(task) for task in tasks] == [["due"]] * 120


async def test_a_task_that_changes_between_the_look_and_the_row_keeps_its_new_time(
    tower: Tower,
) -> None:
    task = await tower.add("interval", "60000")
    tower.clock.advance(MINUTE)

    async def pause() -> None:
        await tower.tasks.act(tower.tasks.pause, task.id)

    tower.store.before_write = pause
    await tower.scheduler.look()

    assert (await tower.tasks.get(task.id)).next_at is None
    assert await tower.states(task) == []


async def test_what_a_run_writes_meanwhile_does_not_keep_its_task_from_firing(
    tower: Tower,
) -> None:
    task = await tower.add("interval", "60000")
    tower.clock.advance(MINUTE)

    async def fail() -> None:
        failed = replace(await tower.tasks.get(task.id), failures=1)
        await tower.store.store.write(lambda tx: tx.tasks.save(failed))

    tower.store.before_write = fail
    await tower.scheduler.look()

    after = await tower.tasks.get(task.id)
    assert (after.failures, after.next_at) == (1, START + 2 * MINUTE)
    assert await tower.states(task) == ["due"]


async def test_a_task_slower_than_its_schedule_waits_once(tower: Tower) -> None:
    task = await tower.add("interval", "1000")
    for _ in range(5):
        tower.clock.advance(timedelta(seconds=1))
        await tower.scheduler.look()

    assert await tower.states(task) == ["due", "skipped", "skipped"]
    last, first, _ = await tower.tasks.ticks(task.id, 9)
    assert (first.due, last.due) == (START + timedelta(seconds=2), START + timedelta(seconds=5))
    assert first.why == "earlier ticks of this task still wait"
    assert last.why == f"{first.why}; so it was for 2 more since that of 2026-02-19 10:00:02 UTC"


async def test_of_ticks_without_end_the_newest_are_kept(tower: Tower) -> None:
    task = await tower.add("interval", "60000", misfire="all")
    for _ in range(MAX_TICKS // 100 + 1):
        tower.clock.advance(100 * MINUTE)
        await tower.scheduler.look()
        await tower.store.store.write(lambda tx: tx.tasks.skip_waiting(task.id, "enough"))

    kept = await tower.tasks.ticks(task.id, 2 * MAX_TICKS)

    # What waits is never dropped: here it was let go after the look.
    assert len(kept) == MAX_TICKS
    assert kept[0].due == START + (MAX_TICKS + 100) * MINUTE


# --- the clock -----------------------------------------------------------------------------------


async def test_a_clock_put_back_brings_no_tick_a_second_time(tower: Tower) -> None:
    task = await tower.add("cron", "*/10 * * * *", misfire="all")
    tower.clock.advance(10 * MINUTE)
    await tower.scheduler.look()
    tower.clock.advance(-5 * MINUTE)
    await tower.scheduler.look()
    tower.clock.advance(5 * MINUTE)
    await tower.scheduler.look()
    assert await tower.dues(task) == [START + 10 * MINUTE]

    # A schedule asked for again begins anew, and meets the row that is there.
    tower.clock.advance(-5 * MINUTE)
    await tower.tasks.act(tower.tasks.pause, task.id)
    await tower.tasks.act(tower.tasks.resume, task.id)
    tower.clock.advance(20 * MINUTE)
    await tower.scheduler.look()
    assert await tower.dues(task) == [START + 10 * MINUTE, START + 20 * MINUTE]


async def test_a_clock_put_forward_makes_up_for_what_it_leapt_over(tower: Tower) -> None:
    hourly = await tower.add("cron", "0 * * * *")
    every = await tower.add("cron", "0 * * * *", misfire="all")
    none = await tower.add("cron", "0 * * * *", misfire="skip")
    tower.clock.advance(3 * HOUR + 30 * MINUTE)

    await tower.scheduler.look()

    assert await tower.states(hourly) == ["skipped", "skipped", "due"]
    assert await tower.states(every) == ["due", "due", "due"]
    assert await tower.states(none) == ["skipped", "skipped", "skipped"]
    assert (await tower.tasks.get(hourly.id)).next_at == START + 4 * HOUR


async def test_after_a_clock_that_was_far_ahead_ticks_come_again_when_they_should(
    tower: Tower,
) -> None:
    task = await tower.add("cron", "0 * * * *")
    async with serving(tower):
        tower.clock.advance(300 * DAY)
        await tower.until(lambda: len(tower.changed) == 2)
        await tower.settle()
        tower.clock.put(START + MINUTE)
        await tower.until(lambda: len(tower.changed) == 3)
        assert (await tower.tasks.get(task.id)).next_at == START + HOUR


async def test_a_start_finds_next_times_that_another_clock_has_left(tmp_path: Path) -> None:
    clock = WatchedClock()
    async with open_tower(tmp_path, clock) as before:
        clock.advance(300 * DAY)
        hourly = await before.add("cron", "0 * * * *")
        single = await before.add("once", "2027-01-01T00:00:00")
    clock.advance(-300 * DAY)
    async with open_tower(tmp_path, clock) as after, serving(after):
        await after.until(lambda: after.changed)
        assert (await after.tasks.get(hourly.id)).next_at == START + HOUR
        assert (await after.tasks.get(single.id)).next_at == datetime(2027, 1, 1, tzinfo=UTC)


# --- while it serves -----------------------------------------------------------------------------


async def test_it_sleeps_to_the_nearest_time_and_asks_nobody_meanwhile(tower: Tower) -> None:
    task = await tower.add("interval", "60000")
    async with serving(tower):
        asked = tower.store.reads
        for _ in range(59):
            tower.clock.advance(timedelta(seconds=1))
            await tower.settle()
        assert (tower.store.reads, await tower.ticks(task)) == (asked, [])
        tower.clock.advance(timedelta(seconds=1))
        await tower.until(lambda: tower.changed.count("family") == 2)
        assert await tower.states(task) == ["due"]


async def test_without_a_task_it_costs_nothing_and_a_new_one_wakes_it(tower: Tower) -> None:
    async with serving(tower):
        asked = tower.store.reads
        tower.clock.advance(DAY)
        await tower.settle()
        assert tower.store.reads == asked
        assert tower.clock.sleepers == 0

        task = await tower.add("interval", "1000")
        await tower.until(lambda: tower.clock.sleepers)
        tower.clock.advance(timedelta(seconds=1))
        await tower.until(lambda: tower.changed.count("family") == 2)
        assert await tower.states(task) == ["due"]


async def test_a_leap_of_the_clock_is_seen_within_a_second(tower: Tower) -> None:
    await tower.add("cron", "0 0 * * *")
    async with serving(tower):
        await tower.until(lambda: tower.clock.sleepers)
        assert tower.clock.longest <= timedelta(seconds=1)


async def test_a_store_that_is_away_is_asked_again(tower: Tower) -> None:
    task = await tower.add("interval", "60000")
    tower.store.is_away = True
    async with serving(tower):
        await tower.until(lambda: tower.clock.sleepers)
        tower.clock.advance(MINUTE)
        await tower.until(lambda: tower.store.reads > 1)
        tower.store.is_away = False
        await tower.until(lambda: tower.clock.sleepers)
        tower.clock.advance(timedelta(seconds=1))
        await tower.until(lambda: tower.changed.count("family") == 2)
    assert await tower.states(task) == ["due"]


async def test_what_was_missed_while_no_host_ran_is_made_up_for_at_the_start(
    tmp_path: Path,
) -> None:
    clock = WatchedClock()
    async with open_tower(tmp_path, clock) as before:
        task = await before.add("cron", "0 * * * *")
    clock.advance(5 * HOUR + 10 * MINUTE)
    async with open_tower(tmp_path, clock) as after, serving(after):
        await after.until(lambda: after.changed)
        assert await after.states(task) == ["skipped"] * 4 + ["due"]


# --- two of them, a month, and the clocks of two continents --------------------------------------


def every_hour(begin: datetime, end: datetime) -> list[datetime]:
    """All in UTC, the first after `begin`."""
    return [begin + number * HOUR for number in range(1, (end - begin) // HOUR + 1)]


def each_day(begin: datetime, end: datetime, zone: str, hour: int, minute: int) -> list[datetime]:
    """A local time of day; one that the clocks skip is the moment when they have moved."""
    place = ZoneInfo(zone)
    found = []
    for number in range((end - begin) // DAY + 2):
        day = begin.astimezone(place).date() + number * DAY
        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=place)
        back = local.astimezone(UTC).astimezone(place)
        if back.replace(tzinfo=None) != local.replace(tzinfo=None):
            back = back.replace(minute=0)
        found.append(back.astimezone(UTC))
    return [at for at in found if begin < at <= end]


def half_hours(begin: datetime, end: datetime, zone: str, hours: range) -> list[datetime]:
    """Every half hour that the local clock shows as one of `hours`, also when it does so twice."""
    place = ZoneInfo(zone)
    steps = [begin + number * HOUR / 2 for number in range(1, 2 * ((end - begin) // HOUR) + 1)]
    return [at for at in steps if at.astimezone(place).hour in hours]


@pytest.mark.parametrize(
    ("begin", "end", "odd_day"),
    [
        # The clocks go forward: in New York on the 8th of March, in Berlin on the 29th.
        (date(2026, 3, 4), date(2026, 4, 4), 23 * HOUR),
        # And back: in Berlin on the 25th of October, in New York on the 1st of November.
        (date(2026, 10, 5), date(2026, 11, 5), 25 * HOUR),
    ],
    ids=["spring", "autumn"],
)
async def test_a_month_of_ticks_over_the_changes_of_the_clocks_with_two_schedulers_racing(
    tmp_path: Path, begin: date, end: date, odd_day: timedelta
) -> None:
    first, last = (datetime(d.year, d.month, d.day, tzinfo=UTC) for d in (begin, end))
    clock = WatchedClock(first)
    async with open_tower(tmp_path, clock) as one, open_tower(tmp_path, clock) as two:
        expected = {}
        for zone in ("Europe/Berlin", "America/New_York"):
            nightly = await one.add("cron", "30 2 * * *", timezone=zone)
            morning = await one.add("cron", "0 9 * * *", timezone=zone)
            hourly = await one.add("cron", "0 * * * *", timezone=zone)
            small_hours = await one.add("cron", "*/30 1-3 * * *", timezone=zone)
            expected[nightly.id] = each_day(first, last, zone, 2, 30)
            expected[morning.id] = each_day(first, last, zone, 9, 0)
            expected[hourly.id] = every_hour(first, last)
            expected[small_hours.id] = half_hours(first, last, zone, range(1, 4))
            gaps = {later - earlier for earlier, later in pairwise(expected[morning.id])}
            assert gaps == {DAY, odd_day}  # or the month would prove nothing

        for moment in sorted({at for dues in expected.values() for at in dues}):
            clock.advance(moment - clock.now())
            await asyncio.gather(one.scheduler.look(), two.scheduler.look())

        for task, dues in expected.items():
            rows = list(reversed(await two.tasks.ticks(task, 100_000)))
            assert [tick.due for tick in rows] == dues
