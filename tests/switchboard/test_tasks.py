from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hallporter.books import Tx
from hallporter.domain.errors import ConflictError, InvalidRequestError, NotFoundError
from hallporter.domain.ids import ChatId, TurnId
from hallporter.domain.plan import MAX_WAITING
from hallporter.domain.task import MAX_PROMPT, Status, Task, TickState
from hallporter.domain.turn import Turn
from hallporter.switchboard.groups import NewGroup
from hallporter.switchboard.quotas import MAX_PACE, MAX_TASKS, MAX_WORDS
from hallporter.switchboard.scheduler import Scheduler
from hallporter.switchboard.tasks import NewTask, TaskChange, Tasks
from tests.fakes.clock import START
from tests.fakes.ids import counting_id
from tests.switchboard.house import CHAT, House, open_house

HOUR = timedelta(hours=1)


class Office:
    """The tasks of a house, with those who are told of them."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.poked = 0
        self.changed: list[str] = []
        self.tasks = Tasks(
            store=house.store,
            engine=house.engine,
            clock=house.clock,
            new_id=counting_id,
            timezone="Europe/Berlin",
            poke=self._poke,
            changed=self.changed.append,
        )
        self.scheduler = Scheduler(
            store=house.store,
            engine=house.engine,
            clock=house.clock,
            changed=self.changed.append,
        )

    def _poke(self) -> None:
        self.poked += 1

    async def add(self, **changes: Any) -> Task:
        new = NewTask(
            folder="family",
            prompt="Say the time.",
            schedule_type="cron",
            schedule_value="0 * * * *",
            created_by="family",
        )
        return await self.tasks.add(replace(new, **changes))

    async def states(self, task: Task) -> list[tuple[str, str]]:
        return [(tick.state, tick.why) for tick in await self.tasks.ticks(task.id, 100)]

    async def pass_time(self, span: timedelta) -> None:
        self.house.clock.advance(span)
        await self.scheduler.look()


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with open_house(tmp_path, is_serving=False) as house:
        await house.register()
        yield Office(house)


# --- made ----------------------------------------------------------------------------------------


async def test_a_task_belongs_to_its_groups_folder_and_chat_and_has_the_defaults(
    office: Office,
) -> None:
    task = await office.add(folder="FAMILY")

    assert (task.folder, task.chat, task.created_by) == ("family", CHAT, "family")
    assert (task.context_mode, task.misfire, task.status) == ("group", "once", "active")
    assert task.schedule.timezone == "Europe/Berlin"
    assert task.next_at == START + HOUR
    assert await office.tasks.get(task.id) == task
    assert (office.poked, office.changed) == (1, ["family"])


async def test_an_id_may_be_chosen_once(office: Office) -> None:
    chosen = await office.add(id="good-morning_1")
    made = await office.add()

    assert chosen.id == "good-morning_1"
    assert made.id.startswith("task_")
    with pytest.raises(ConflictError, match="is taken"):
        await office.add(id="good-morning_1")
    for wrong in ("", "a b", "../x", "a" * 65, "ä"):
        with pytest.raises(InvalidRequestError, match="1 to 64 letters"):
            await office.add(id=wrong)


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"prompt": " \n"}, "prompt", "the prompt is empty"),
        ({"prompt": "x" * (MAX_PROMPT + 1)}, "prompt", "has 32,769 characters"),
        ({"schedule_type": "weekly"}, "schedule_type", "'cron', 'interval' or 'once'"),
        ({"schedule_value": "soon"}, "schedule_value", "a cron expression has five"),
        ({"timezone": "Mars/Olympus"}, "timezone", "is no time zone"),
        ({"context_mode": "shared"}, "context_mode", "'group' or 'isolated', not 'shared'"),
        ({"misfire": "twice"}, "misfire", "'once' or 'skip' or 'all', not 'twice'"),
    ],
)
async def test_what_does_not_fit_is_told_by_field_and_value(
    office: Office, changes: dict[str, str], field: str, told: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await office.add(**changes)

    assert caught.value.facts["field"] == field
    assert told in caught.value.message
    assert await office.tasks.all() == []


async def test_a_task_for_no_group_is_refused(office: Office) -> None:
    with pytest.raises(NotFoundError, match="no group has the folder 'nobody'"):
        await office.add(folder="nobody")


async def test_a_folder_has_so_many_tasks_and_completed_ones_make_way(office: Office) -> None:
    first = await office.add(schedule_type="once", schedule_value="2026-02-19T11:30")

    def fill(tx: Tx) -> None:
        for number in range(MAX_TASKS - 1):
            later = first.created_at + timedelta(seconds=1 + number)
            tx.tasks.add(replace(first, id=f"t{number}", created_at=later))  # type: ignore[arg-type]

    await office.house.store.write(fill)
    with pytest.raises(ConflictError, match="has 1000 tasks, which is the most"):
        await office.add()

    done = replace(first, status=Status.COMPLETED, next_at=None)
    await office.house.store.write(lambda tx: tx.tasks.save(done))
    added = await office.add()

    ids = [task.id for task in await office.tasks.all("family")]
    assert len(ids) == MAX_TASKS
    assert first.id not in ids
    assert added.id in ids


async def test_the_prompts_of_a_folder_have_so_many_characters_together(office: Office) -> None:
    await office.house.register(ChatId("fake:work"))
    long = "😀" * MAX_PROMPT
    once = {"schedule_type": "once", "schedule_value": "2026-02-19T11:30"}
    for _ in range(MAX_WORDS // MAX_PROMPT - 1):
        await office.add(prompt=long)
    first = await office.add(prompt=long, **once)
    with pytest.raises(ConflictError, match="prompts of 262,144 characters, which is the most"):
        await office.add(prompt="x")
    await office.add(folder="work", prompt=long)

    await office.house.store.write(
        lambda tx: tx.tasks.save(replace(first, status=Status.COMPLETED, next_at=None))
    )
    small = await office.add(prompt="x")

    assert first.id not in [task.id for task in await office.tasks.all("family")]
    await office.add(prompt=long[:-1])
    with pytest.raises(ConflictError, match="262,144 together"):
        await office.tasks.update(small.id, TaskChange(prompt="xx"))
    await office.tasks.update(small.id, TaskChange(prompt="y"))


async def test_the_intervals_of_a_folder_come_so_often_and_no_oftener(office: Office) -> None:
    every = {"schedule_type": "interval", "schedule_value": "1000"}
    await office.house.register(ChatId("fake:work"))
    made = [await office.add(**every) for _ in range(MAX_PACE // 60)]

    with pytest.raises(ConflictError, match="come 660 times a minute, and 600 is the most"):
        await office.add(**every)
    daily = await office.add()
    slow = TaskChange(schedule_type="interval", schedule_value="60000")
    with pytest.raises(ConflictError, match="601 times a minute"):
        await office.tasks.update(daily.id, slow)
    await office.add(folder="work", **every)

    await office.tasks.act(office.tasks.pause, made[0].id)
    other = await office.add(**every)
    with pytest.raises(ConflictError, match="660 times a minute"):
        await office.tasks.act(office.tasks.resume, made[0].id)
    await office.tasks.act(office.tasks.cancel, other.id)
    await office.tasks.act(office.tasks.resume, made[0].id)


async def test_tasks_are_listed_by_group(office: Office) -> None:
    await office.house.register(ChatId("fake:work"))
    ours = await office.add()
    theirs = await office.add(folder="work")

    assert await office.tasks.all() == [ours, theirs]
    assert await office.tasks.all("Work") == [theirs]
    with pytest.raises(NotFoundError):
        await office.tasks.all("nobody")


# --- changed -------------------------------------------------------------------------------------


async def test_only_what_is_given_changes(office: Office) -> None:
    task = await office.add()
    change = TaskChange(prompt="Say the day.", context_mode="isolated", misfire="skip")

    changed = await office.tasks.update(task.id, change)

    assert (changed.prompt, changed.context_mode, changed.misfire) == (
        "Say the day.",
        "isolated",
        "skip",
    )
    assert (changed.schedule, changed.next_at) == (task.schedule, task.next_at)
    assert await office.tasks.get(task.id) == changed


async def test_a_new_schedule_counts_from_now(office: Office) -> None:
    task = await office.add()
    office.house.clock.advance(timedelta(minutes=10))
    office.poked = 0
    every = TaskChange(schedule_type="interval", schedule_value="60000")

    changed = await office.tasks.update(task.id, every)

    assert changed.next_at == START + timedelta(minutes=11)
    assert office.poked == 1


async def test_another_zone_moves_the_same_schedule(office: Office) -> None:
    task = await office.add(schedule_value="0 18 * * *")

    changed = await office.tasks.update(task.id, TaskChange(timezone="America/New_York"))

    assert task.next_at == START + 7 * HOUR
    assert changed.next_at == START + 13 * HOUR


async def test_a_paused_task_stays_paused_and_a_completed_one_lives_again(
    office: Office,
) -> None:
    paused = await office.add()
    await office.tasks.act(office.tasks.pause, paused.id)
    over = await office.add(schedule_type="once", schedule_value="2026-02-19T11:30")
    await office.pass_time(HOUR)

    still = await office.tasks.update(paused.id, TaskChange(schedule_value="30 * * * *"))
    again = await office.tasks.update(over.id, TaskChange(schedule_value="2026-02-19T15:00"))

    assert (still.status, still.next_at) == ("paused", None)
    assert (again.status, again.next_at) == ("active", START + 4 * HOUR)


async def test_a_change_that_does_not_fit_changes_nothing(office: Office) -> None:
    task = await office.add()

    with pytest.raises(InvalidRequestError):
        await office.tasks.update(task.id, TaskChange(prompt="x", schedule_value="99 * * * *"))
    # An expression is no number of milliseconds.
    with pytest.raises(InvalidRequestError):
        await office.tasks.update(task.id, TaskChange(schedule_type="interval"))

    assert await office.tasks.get(task.id) == task


# --- paused, resumed, cancelled, run by hand -----------------------------------------------------


@pytest.mark.requirement("task.pause.does-not-run")
async def test_a_paused_task_does_not_fire_and_what_waits_is_skipped(office: Office) -> None:
    task = await office.add()
    await office.pass_time(HOUR)

    paused = await office.tasks.act(office.tasks.pause, task.id)
    again = await office.tasks.act(office.tasks.pause, task.id)
    await office.pass_time(5 * HOUR)

    assert (paused.status, paused.next_at) == ("paused", None)
    assert again == paused
    assert await office.states(task) == [("skipped", "paused")]


@pytest.mark.requirement("task.resume.runs-again")
async def test_a_resumed_task_goes_on_from_now(office: Office) -> None:
    task = await office.add()
    await office.tasks.act(office.tasks.pause, task.id)
    await office.house.store.write(
        lambda tx: tx.tasks.save(replace(paused_of(tx, task), failures=5))
    )
    await office.pass_time(5 * HOUR + timedelta(minutes=1))

    resumed = await office.tasks.act(office.tasks.resume, task.id)

    assert (resumed.status, resumed.next_at) == ("active", START + 6 * HOUR)
    assert resumed.failures == 0
    assert await office.tasks.act(office.tasks.resume, task.id) == resumed
    await office.pass_time(HOUR)
    assert await office.states(task) == [("due", "")]


def paused_of(tx: Tx, task: Task) -> Task:
    found = tx.tasks.get(task.id)
    assert found is not None
    return found


async def test_an_interval_goes_on_on_its_grid(office: Office) -> None:
    task = await office.add(schedule_type="interval", schedule_value="600000")
    await office.tasks.act(office.tasks.pause, task.id)
    office.house.clock.advance(timedelta(minutes=25))

    resumed = await office.tasks.act(office.tasks.resume, task.id)

    assert resumed.next_at == START + timedelta(minutes=30)


async def test_a_single_time_that_is_over_can_be_neither_paused_nor_resumed(
    office: Office,
) -> None:
    done = await office.add(schedule_type="once", schedule_value="2026-02-19T11:30")
    missed = await office.add(schedule_type="once", schedule_value="2026-02-19T11:30")
    await office.tasks.act(office.tasks.pause, missed.id)
    await office.pass_time(HOUR)

    with pytest.raises(ConflictError, match="nothing to pause"):
        await office.tasks.act(office.tasks.pause, done.id)
    for task in (done, missed):
        with pytest.raises(ConflictError, match="is over: give it a new one"):
            await office.tasks.act(office.tasks.resume, task.id)


@pytest.mark.requirement("task.cancel.deletes")
async def test_a_cancelled_task_is_gone_with_its_ticks(office: Office) -> None:
    task = await office.add()
    await office.pass_time(HOUR)

    await office.tasks.act(office.tasks.cancel, task.id)

    assert await office.tasks.all() == []
    assert await office.house.store.read(lambda tx: tx.tasks.ticks(task.id, 9)) == []
    for verb in (office.tasks.cancel, office.tasks.pause, office.tasks.resume):
        with pytest.raises(NotFoundError, match="no task has the id"):
            await office.tasks.act(verb, task.id)


async def test_run_by_hand_is_one_tick_more_whatever_the_status(office: Office) -> None:
    task = await office.add()
    tick = await office.tasks.act(office.tasks.run_now, task.id)
    await office.tasks.act(office.tasks.pause, task.id)
    office.house.clock.tick()
    await office.tasks.act(office.tasks.run_now, task.id)

    chat = await office.house.chat()
    assert (tick.due, tick.state, tick.why) == (START, "due", "run by hand")
    assert chat.due_at is not None
    assert await office.states(task) == [("due", "run by hand"), ("skipped", "paused")]
    assert (await office.tasks.get(task.id)).status == "paused"


async def test_no_more_than_so_many_runs_by_hand_wait(office: Office) -> None:
    task = await office.add()
    for _ in range(MAX_WAITING):
        office.house.clock.tick()
        await office.tasks.act(office.tasks.run_now, task.id)

    with pytest.raises(ConflictError, match="wait already"):
        await office.tasks.act(office.tasks.run_now, task.id)


# --- groups that go ------------------------------------------------------------------------------


async def test_the_tasks_of_a_removed_group_are_paused_and_stay_so_without_it(
    office: Office,
) -> None:
    task = await office.add()
    over = await office.add(schedule_type="once", schedule_value="2026-02-19T11:30")
    await office.pass_time(HOUR)

    await office.house.groups.remove("family")

    gone = ("skipped", "the group was removed")
    statuses = {one.id: one.status for one in await office.tasks.all()}
    assert statuses == {task.id: "paused", over.id: "completed"}
    assert await office.states(task) == await office.states(over) == [gone]
    for verb in (office.tasks.resume, office.tasks.run_now):
        with pytest.raises(ConflictError, match="is not the group 'family' any more"):
            await office.tasks.act(verb, task.id)


async def test_a_folder_that_went_to_another_chat_does_not_take_the_old_tasks_along(
    office: Office,
) -> None:
    task = await office.add()
    await office.house.groups.remove("family")
    elsewhere = NewGroup(chat="fake:elsewhere", name="Family", folder="family")
    await office.house.groups.add(elsewhere)

    with pytest.raises(ConflictError, match="register it again, or cancel the task"):
        await office.tasks.act(office.tasks.resume, task.id)
    await office.tasks.act(office.tasks.cancel, task.id)


async def test_a_group_registered_again_can_resume_its_tasks(office: Office) -> None:
    task = await office.add()
    await office.house.groups.remove("family")
    await office.house.register()

    assert (await office.tasks.act(office.tasks.resume, task.id)).status == "active"


async def test_a_tick_that_runs_while_its_group_goes_has_failed(office: Office) -> None:
    task = await office.add()
    await office.pass_time(HOUR)

    def begin(tx: Tx) -> None:
        (tick,) = tx.tasks.ticks(task.id, 1)
        tx.tasks.save_tick(replace(tick, state=TickState.RUNNING, started_at=tick.due))
        tx.turns.add(
            Turn(
                id=TurnId("t_tick"),
                chat=CHAT,
                epoch=1,
                attempt=1,
                session_no=0,
                waiting_since=tick.due,
                started_at=tick.due,
                cursor=0,
                piped=0,
                task=task.id,
                due=tick.due,
            )
        )

    await office.house.store.write(begin)
    await office.house.groups.remove("family")

    assert await office.states(task) == [("failed", "the group was removed")]
