"""Turns that serve a tick: before the backlog, past its backoff, and answered at most once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.brief import Block
from hallporter.domain.errors import AgentFailedError, AgentRefusedError, FencedError
from hallporter.domain.happening import TurnChanged
from hallporter.domain.ids import ChatId, Folder
from hallporter.domain.ladder import RUNGS
from hallporter.domain.message import Kind
from hallporter.domain.task import (
    LATE_AFTER,
    MAX_FAILURES,
    MAX_INTERRUPTIONS,
    ContextMode,
    Status,
    Task,
    Tick,
    TickState,
)
from hallporter.switchboard.notices import Notices
from hallporter.switchboard.outbound import Outbound, Words
from hallporter.switchboard.progress import Progress
from hallporter.switchboard.scheduler import Scheduler
from hallporter.switchboard.tasks import NewTask, Tasks
from tests.fakes.agent import ScriptedSeat
from tests.fakes.clock import FakeClock
from tests.fakes.ids import counting_id
from tests.fakes.tasks import a_task
from tests.switchboard.house import CHAT, PATIENCE, House, open_house

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.chat import Chat

LADDER = ("attempts", "is_parked", "interruptions", "not_before", "woken_at", "cursor")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        await opened.register()
        yield opened


async def add(house: House, chat: ChatId = CHAT, **more: object) -> Task:
    task = a_task(chat, **more)  # type: ignore[arg-type]
    await house.store.write(lambda tx: tx.tasks.add(task))
    return task


async def fall_due(house: House, task: Task) -> Tick:
    """As the scheduler does it: the row and the ring are one transaction."""
    house.clock.tick()
    tick = Tick(task=task.id, due=house.clock.now(), chat=task.chat, state=TickState.DUE)

    def fn(tx: Tx) -> None:
        assert tx.tasks.add_tick(tick)
        house.engine.ring(tx, task.chat)

    await house.store.write(fn)
    return tick


async def tick_now(house: House, tick: Tick) -> Tick:
    now = await house.store.read(lambda tx: tx.tasks.tick(tick.task, tick.due))
    assert now is not None
    return now


async def task_now(house: House, task: Task) -> Task:
    now = await house.store.read(lambda tx: tx.tasks.get(task.id))
    assert now is not None
    return now


async def reached(house: House, tick: Tick, state: TickState) -> Tick:
    async with asyncio.timeout(PATIENCE):
        while (now := await tick_now(house, tick)).state is not state:
            await house.a_while()
    return now


async def over(house: House, seat: ScriptedSeat) -> None:
    await house.agent.over(seat)
    await house.idle()


def ladder(chat: Chat) -> list[object]:
    return [getattr(chat, name) for name in LADDER]


# --- its turn -------------------------------------------------------------------------------------


async def test_a_waiting_tick_goes_before_the_backlog_which_follows_it(tmp_path: Path) -> None:
    async with open_house(tmp_path, slots=1) as house:
        await house.register(other := ChatId("fake:other"))
        await house.register()
        await house.hear("first come", other)
        busy = await house.agent.seated()
        message = await house.hear("hello")
        await fall_due(house, await add(house))
        busy.say("done")

        seat = await house.agent.seated(2)
        assert seat.brief.task is not None
        seat.say("watered")
        after = await house.agent.seated(3)

        assert after.texts() == ["hello"]
        after.say("hi")
        await house.settled(message, "answered")
        assert await house.replies() == ["watered", "hi"]


async def test_the_agent_of_a_task_gets_its_prompt_and_no_messages(house: House) -> None:
    task = await add(house, prompt="count the cups")
    await house.hear("/status")  # moves the head, which is not the cursor

    await fall_due(house, task)

    brief = (await house.agent.seated()).brief
    assert brief.task is not None
    assert (brief.task.prompt, brief.batch.lines, brief.attempt) == ("count the cups", (), 1)
    assert brief.batch.through == (await house.chat()).cursor


@pytest.mark.parametrize(("text", "outcome"), [("watered", "answered"), (None, "silent")])
async def test_a_tick_has_run_with_its_first_block(
    house: House, text: str | None, outcome: str
) -> None:
    task = await add(house)
    tick = await fall_due(house, task)
    seat = await house.agent.seated()
    running = await tick_now(house, tick)
    assert (running.state, running.attempts) == (TickState.RUNNING, 1)
    assert running.started_at == (await task_now(house, task)).last_at == house.clock.now()
    assert (await house.chat()).due_at is None

    seat.say(text, idle=False)
    ran = await reached(house, tick, TickState.RAN)
    assert ran.ended_at is None
    house.clock.tick()
    seat.say(None)
    await over(house, seat)

    assert (await tick_now(house, tick)).ended_at == house.clock.now()
    assert await house.replies() == ([text] if text else [])
    turn = await house.store.read(lambda tx: tx.turns.get(seat.brief.turn))
    assert turn is not None
    assert (turn.outcome, turn.task, turn.due) == (outcome, task.id, tick.due)


async def test_a_tick_that_began_long_after_its_time_is_late(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock, is_serving=False) as house:
        await house.register()
        tick = await fall_due(house, await add(house))
    clock.advance(LATE_AFTER + timedelta(seconds=1))

    async with open_house(tmp_path, clock=clock) as house:
        (await house.agent.seated()).say("at last")

        late = await reached(house, tick, TickState.LATE)
        assert late.lateness == LATE_AFTER + timedelta(seconds=1)


async def test_ticks_of_one_chat_run_one_after_another_earliest_first(house: House) -> None:
    tasks = [await add(house, prompt=name) for name in "abc"]
    for task in tasks:
        await fall_due(house, task)
    for number, task in enumerate(tasks, 1):
        seat = await house.agent.seated(number)
        assert seat.brief.task is not None
        assert seat.brief.task.prompt == task.prompt
        seat.say(f"did {task.prompt}")
        await house.agent.over(seat)

    assert await house.replies() == ["did a", "did b", "did c"]
    assert house.agent.most_live == 1


async def test_of_many_tasks_one_tick_goes_before_the_same_backlog(house: House) -> None:
    tasks = [await add(house, prompt=name) for name in "abcd"]
    await fall_due(house, tasks[0])
    first = await house.agent.seated()
    message = await house.hear("hello?")
    for task in tasks:
        await fall_due(house, task)
    first.say("done")
    second = await house.agent.seated(2)
    assert second.brief.task is not None
    house.clock.tick()
    second.say("done")

    people = await house.agent.seated(3)

    assert people.texts() == ["hello?"]
    people.say("here I am")
    await house.settled(message, "answered")
    for number in (4, 5, 6):
        seat = await house.agent.seated(number)
        assert seat.brief.task is not None
        seat.say("done")


async def test_tasks_that_make_tasks_do_not_keep_people_waiting_for_ever(house: House) -> None:
    await fall_due(house, await add(house))
    first = await house.agent.seated()
    message = await house.hear("hello?")
    await fall_due(house, await add(house))
    first.say("done")
    second = await house.agent.seated(2)
    assert second.brief.task is not None
    await fall_due(house, await add(house))
    second.say("done")

    people = await house.agent.seated(3)

    assert people.texts() == ["hello?"]
    people.say("here I am")
    await house.settled(message, "answered")
    (await house.agent.seated(4)).say("done")


async def test_ticks_and_messages_of_many_chats_share_the_slots_oldest_first(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path, slots=2) as house:
        chats = [ChatId(f"fake:c{number}") for number in range(6)]
        for number, chat in enumerate(chats):
            await house.register(chat)
            if number % 2:
                await fall_due(house, await add(house, chat))
            else:
                await house.hear("hello", chat)
        for number, chat in enumerate(chats, 1):
            seat = await house.agent.seated(number)
            assert seat.brief.chat == chat
            seat.say("hi")
            await house.agent.over(seat)

        assert house.agent.most_live == 2


async def test_the_feed_tells_of_a_tasks_turn_and_that_it_covers_nothing(house: House) -> None:
    news: list[TurnChanged] = []
    async with asyncio.timeout(PATIENCE), house.feed.subscribe(CHAT) as events:
        await fall_due(house, await add(house))
        (await house.agent.seated()).say("watered")
        async for event in events:
            if isinstance(event, TurnChanged):
                news.append(event)
                if event.state != "started":
                    break

    assert [(event.state, event.covers) for event in news] == [("started", ()), ("answered", ())]


async def test_what_a_task_said_can_be_explained(house: House) -> None:
    await fall_due(house, await add(house))
    seat = await house.agent.seated()
    seat.say("watered")
    await over(house, seat)

    (said,) = (await house.story.page(CHAT, after=None, limit=10)).messages
    fate = await house.settled(said, "sent")

    assert (fate.steps[0].what, fate.replies) == ("written by the agent", ())
    assert fate.turn is not None
    assert fate.turn.due is not None
    due = fate.turn.due.isoformat(timespec="seconds")
    assert fate.steps[0].why == f"for the task {fate.turn.task}, due at {due}"
    assert await house.story.given_in(fate.turn) == []


async def test_nobody_is_shown_typing_for_a_task(house: House) -> None:
    await fall_due(house, await add(house))
    seat = await house.agent.seated()
    seat.say("watered")
    await over(house, seat)

    assert house.channel.typings == []


async def test_a_tick_of_a_chat_that_is_no_longer_registered_is_skipped(house: House) -> None:
    task = await add(house)
    await house.groups.remove("family")

    tick = await fall_due(house, task)

    skipped = await reached(house, tick, TickState.SKIPPED)
    assert skipped.why == "the chat is not registered"
    assert (await house.chat()).due_at is None


async def test_a_tick_does_not_run_in_another_folder_than_its_tasks(house: House) -> None:
    task = replace(a_task(CHAT), folder=Folder("before"))
    await house.store.write(lambda tx: tx.tasks.add(task))

    tick = await fall_due(house, task)

    assert (await reached(house, tick, TickState.SKIPPED)).why == "its group is gone"
    assert house.agent.seats == []


async def test_a_one_shot_task_that_runs_longer_than_many_sweeps_runs_once(house: House) -> None:
    scheduler = Scheduler(
        store=house.store, engine=house.engine, clock=house.clock, changed=lambda _folder: None
    )
    tasks = tasks_of(house, scheduler.poke)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(scheduler.serve())
        task = await tasks.add(
            NewTask(
                folder="family",
                prompt="take your time",
                schedule_type="once",
                schedule_value="2026-02-19T10:01:00",
                created_by="operator",
                timezone="UTC",
            )
        )
        house.clock.advance(timedelta(minutes=1))
        seat = await house.agent.seated()
        for _ in range(20):
            house.clock.advance(timedelta(minutes=1))
            await house.a_while()
        seat.say("done at last")
        await over(house, seat)
        house.clock.advance(timedelta(hours=1))
        await house.idle()
        serving.cancel()

    assert len(house.agent.seats) == 1
    assert [tick.state for tick in await tasks.ticks(task.id, 10)] == [TickState.RAN]
    assert (await tasks.get(task.id)).status is Status.COMPLETED
    assert await house.replies() == ["done at last"]


# --- what it leaves alone -------------------------------------------------------------------------


@pytest.mark.rule("R6")
async def test_nothing_is_piped_into_a_tasks_agent(house: House) -> None:
    await fall_due(house, await add(house))
    seat = await house.agent.seated()

    message = await house.hear("while you are at it")
    await house.a_while()
    assert seat.fed == []
    seat.say("watered")

    after = await house.agent.seated(2)
    assert after.texts() == ["while you are at it"]
    after.say("yes?")
    await house.settled(message, "answered")
    assert seat.fed == []


@pytest.mark.parametrize("fails", [False, True], ids=["that runs", "that fails"])
async def test_a_tick_neither_shortens_nor_burns_the_ladder_of_messages(
    house: House, *, fails: bool
) -> None:
    message = await house.hear("one")
    first = await house.agent.seated()
    first.fail("the model is away")
    await over(house, first)
    before = await house.chat()
    assert (before.attempts, before.not_before) == (1, house.clock.now() + RUNGS[0])

    await fall_due(house, await add(house))
    seat = await house.agent.seated(2)
    assert seat.brief.task is not None
    if fails:
        seat.fail("no water")
    else:
        seat.say("watered")
    await over(house, seat)

    assert ladder(await house.chat()) == ladder(before)
    assert len(house.agent.seats) == 2
    house.clock.advance(RUNGS[0])
    again = await house.agent.seated(3)
    assert (again.texts(), again.brief.attempt) == (["one"], 2)
    again.say("here")
    await house.settled(message, "answered")


async def test_a_ring_for_a_tick_that_is_gone_leaves_the_backoff_as_it_is(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        await house.hear("one")
        seat = await house.agent.seated()
        seat.fail("the model is away")
        await over(house, seat)
        before = await house.chat()

        await house.store.write(lambda tx: house.engine.ring(tx, CHAT))
        await house.idle()

        assert await house.chat() == before
        assert len(house.agent.seats) == 1
        clock.advance(RUNGS[0])
        await house.agent.seated(2)


async def test_messages_that_fail_do_not_delay_a_tick_that_fell_due_meanwhile(house: House) -> None:
    await house.hear("one")
    seat = await house.agent.seated()
    await fall_due(house, await add(house))

    seat.fail("the model is away")

    after = await house.agent.seated(2)
    assert after.brief.task is not None


@pytest.mark.rule("R11")
@pytest.mark.requirement("task.context.group")
async def test_a_tasks_session_in_group_mode_is_the_groups_and_is_kept(house: House) -> None:
    message = await house.hear("hello")
    (await house.agent.seated()).say("hi", session="s1")
    await house.settled(message, "answered")
    await fall_due(house, await add(house))
    seat = await house.agent.seated(2)
    assert seat.brief.session_id == "s1"

    seat.say("watered", session="s2")

    await over(house, seat)
    assert (await house.chat()).session_id == "s2"


@pytest.mark.rule("R11")
@pytest.mark.requirement("task.context.isolated")
async def test_an_isolated_task_gets_no_session_and_leaves_none(house: House) -> None:
    message = await house.hear("hello")
    (await house.agent.seated()).say("hi", session="s1")
    await house.settled(message, "answered")
    await fall_due(house, await add(house, mode=ContextMode.ISOLATED))
    seat = await house.agent.seated(2)
    assert seat.brief.session_id is None

    seat.say("watered", session="s2")

    await over(house, seat)
    assert (await house.chat()).session_id == "s1"


@pytest.mark.rule("R11")
async def test_new_during_a_task_is_not_overwritten_by_it(house: House) -> None:
    await fall_due(house, await add(house))
    seat = await house.agent.seated()
    await house.hear("/new")

    seat.say("watered", session="old")

    await over(house, seat)
    assert (await house.chat()).session_id is None
    assert seat.is_dismissed


# --- failure --------------------------------------------------------------------------------------


def error_block(seat: ScriptedSeat) -> None:
    seat.fail("the can is empty")


def silent_exit(seat: ScriptedSeat) -> None:
    seat.leave(3)


@pytest.mark.parametrize(
    ("fail", "why"), [(error_block, "the can is empty"), (silent_exit, "the agent ended (3)")]
)
async def test_a_failure_before_the_first_words_fails_the_tick_and_is_told_once(
    house: House, fail: Callable[[ScriptedSeat], None], why: str
) -> None:
    task = await add(house, prompt="water\nthe plants")
    tick = await fall_due(house, task)

    fail(await house.agent.seated())

    failed = await reached(house, tick, TickState.FAILED)
    assert (failed.why, failed.attempts, failed.ended_at) == (why, 1, house.clock.now())
    house.clock.advance(timedelta(minutes=10))
    await house.idle()
    assert len(house.agent.seats) == 1
    assert await house.replies() == [f'The task "water the plants" failed: {why}.']
    assert (await task_now(house, task)).failures == 1


@pytest.mark.parametrize("trouble", [AgentRefusedError, AgentFailedError])
async def test_an_agent_that_cannot_start_fails_the_tick(
    house: House, trouble: type[AgentRefusedError | AgentFailedError]
) -> None:
    house.agent.trouble = trouble("there is no such program.")
    tick = await fall_due(house, await add(house))

    failed = await reached(house, tick, TickState.FAILED)

    assert failed.why == "there is no such program."
    assert await house.replies() == [
        'The task "water the plants" failed: there is no such program.'
    ]


async def test_a_success_ends_the_row_of_failures(house: House) -> None:
    task = await add(house)
    for number in range(1, MAX_FAILURES):
        tick = await fall_due(house, task)
        (await house.agent.seated(number)).fail("no water")
        await reached(house, tick, TickState.FAILED)
    assert (await task_now(house, task)).failures == MAX_FAILURES - 1

    tick = await fall_due(house, task)
    (await house.agent.seated(MAX_FAILURES)).say("watered")
    await reached(house, tick, TickState.RAN)

    now = await task_now(house, task)
    assert (now.failures, now.status) == (0, Status.ACTIVE)


async def test_five_failures_in_a_row_pause_the_task_and_tell_its_chat_and_the_operator(
    house: House,
) -> None:
    task = await add(house)
    notices = notices_of(house)
    for number in range(1, MAX_FAILURES + 1):
        await notices.look()
        assert await notices.open() == []
        tick = await fall_due(house, task)
        (await house.agent.seated(number)).fail("no water.")
        await reached(house, tick, TickState.FAILED)

    paused = await task_now(house, task)
    assert (paused.status, paused.next_at) == (Status.PAUSED, None)
    assert (await house.replies())[-1] == (
        'The task "water the plants" failed 5 times in a row and is paused now: no water.'
    )
    for _ in range(3):
        await notices.look()
    (notice,) = await notices.open()
    assert notice.key == f"task:{task.id}"
    assert "no water" in notice.text
    assert f"tasks resume {task.id}" in notice.text

    await tasks_of(house).act(tasks_of(house).resume, task.id)
    await notices.look()
    assert await notices.open() == []


async def test_a_failure_behind_the_words_leaves_the_tick_as_it_is_and_is_noted(
    house: House,
) -> None:
    task = await add(house)
    tick = await fall_due(house, task)
    seat = await house.agent.seated()
    seat.say("half of it", idle=False)
    await reached(house, tick, TickState.RAN)

    seat.fail("the can is empty")
    await over(house, seat)

    ended = await tick_now(house, tick)
    assert (ended.state, ended.ended_at) == (TickState.RAN, house.clock.now())
    assert ended.why == "failed behind its answer: the can is empty"
    assert await house.replies() == ["half of it"]
    assert (await task_now(house, task)).failures == 0


async def test_an_exit_behind_the_words_is_the_end_of_the_run(house: House) -> None:
    tick = await fall_due(house, await add(house))
    seat = await house.agent.seated()
    seat.say("all of it", idle=False)
    seat.leave(3)
    await over(house, seat)

    ended = await tick_now(house, tick)
    assert (ended.state, ended.why) == (TickState.RAN, "")
    assert ended.ended_at == house.clock.now()


async def test_stop_ends_a_tasks_run_without_blaming_the_task(house: House) -> None:
    task = await add(house)
    tick = await fall_due(house, task)
    seat = await house.agent.seated()
    message = await house.hear("and hello")
    cursor = (await house.chat()).cursor

    await house.hear("/stop")

    stopped = await reached(house, tick, TickState.FAILED)
    assert (stopped.why, (await task_now(house, task)).failures) == ("stopped", 0)
    await house.agent.over(seat)
    assert seat.is_stopped
    after = await house.agent.seated(2)
    assert (after.texts(), after.brief.task) == (["and hello"], None)
    assert after.brief.batch.through > cursor
    after.say("hello")
    await house.settled(message, "answered")
    assert await house.replies() == ["Stopped.", "hello"]


@pytest.mark.rule("R10")
async def test_what_a_stopped_task_still_says_is_fenced_out(tmp_path: Path) -> None:
    async with open_house(tmp_path, is_serving=False) as house:
        await house.register()
        tick = await fall_due(house, await add(house))
        opened = await house.store.write(lambda tx: house.clerk.open(tx, CHAT))
        assert opened is not None
        await house.hear("/stop")
        words = Block(
            is_error=False, text="watered", session_id=None, error="", through=0, idle=True
        )

        with pytest.raises(FencedError):
            await house.store.write(
                lambda tx: house.clerk.block(tx, opened.turn, words, Progress())
            )

        assert (await tick_now(house, tick)).why == "stopped"


async def test_the_run_of_a_task_that_is_cancelled_meanwhile_ends_as_usual(house: House) -> None:
    task = await add(house)
    await fall_due(house, task)
    seat = await house.agent.seated()
    await house.store.write(lambda tx: tx.tasks.remove(task.id))

    seat.say("watered all the same", idle=False, session="s1")
    seat.say(None)
    await over(house, seat)

    assert await house.replies() == ["watered all the same"]
    assert (await house.chat()).session_id == "s1"


async def test_the_failure_of_a_cancelled_task_breaks_nothing(house: House) -> None:
    task = await add(house)
    await fall_due(house, task)
    seat = await house.agent.seated()
    await house.store.write(lambda tx: tx.tasks.remove(task.id))

    seat.fail("too late")
    await over(house, seat)

    message = await house.hear("hello")
    (await house.agent.seated(2)).say("hi")
    await house.settled(message, "answered")
    assert await house.replies() == ["hi"]


async def test_a_failed_task_is_no_notice_that_the_agent_keeps_failing(house: House) -> None:
    tick = await fall_due(house, await add(house))
    (await house.agent.seated()).fail("no water")
    await reached(house, tick, TickState.FAILED)
    await house.idle()

    notices = notices_of(house)
    await notices.look()

    assert await notices.open() == []


# --- the host's own end ---------------------------------------------------------------------------


async def test_a_run_cut_down_before_its_first_words_runs_again_and_its_row_says_so(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        task = await add(house)
        tick = await fall_due(house, task)
        await house.agent.seated()

    async with open_house(tmp_path, clock=clock) as house:
        seat = await house.agent.seated()
        assert seat.brief.task is not None
        assert seat.brief.attempt == 2
        seat.say("watered")
        ran = await reached(house, tick, TickState.RAN)

        assert (ran.why, ran.attempts) == ("run again: the host ended", 2)
        assert (await task_now(house, task)).failures == 0
        assert (await house.chat()).interruptions == 0
        assert await house.replies() == ["watered"]


async def test_a_run_cut_down_behind_its_first_words_does_not_run_again(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        tick = await fall_due(house, await add(house))
        seat = await house.agent.seated()
        seat.say("half of it", idle=False)
        await reached(house, tick, TickState.RAN)

    async with open_house(tmp_path, clock=clock) as house:
        await house.idle()

        assert house.agent.seats == []
        ended = await tick_now(house, tick)
        assert (ended.state, ended.attempts) == (TickState.RAN, 1)
        assert (ended.why, ended.ended_at) == ("the host ended behind its answer", clock.now())
        assert await house.replies() == ["half of it"]


async def test_a_backlog_that_waited_behind_a_cut_down_run_is_still_answered(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        await fall_due(house, await add(house))
        await house.agent.seated()
        message = await house.hear("hello")

    async with open_house(tmp_path, clock=clock) as house:
        (await house.agent.seated()).say("watered")
        (await house.agent.seated(2)).say("hi")
        await house.settled(message, "answered")
        assert await house.replies() == ["watered", "hi"]


async def test_a_tick_that_was_cut_down_ten_times_has_failed(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        task = await add(house)
        tick = await fall_due(house, task)
        await house.agent.seated()
    for _ in range(MAX_INTERRUPTIONS - 1):
        async with open_house(tmp_path, clock=clock) as house:
            await house.agent.seated()

    async with open_house(tmp_path, clock=clock) as house:
        failed = await reached(house, tick, TickState.FAILED)
        await house.idle()

        assert house.agent.seats == []
        assert failed.attempts == MAX_INTERRUPTIONS
        assert "the host ended each time it ran" in (await house.replies())[0]
        assert (await task_now(house, task)).failures == 1


# --- mail -----------------------------------------------------------------------------------------


async def test_an_agent_is_told_of_tasks_and_groups_before_each_run(house: House) -> None:
    house.mail.snapshots = replace(house.mail.snapshots, tasks='[{"id": "t1"}]')

    await house.hear("hello")

    seat = await house.agent.seated()
    assert seat.brief.snapshots.tasks == '[{"id": "t1"}]'
    assert house.mail.announced == ["family"]


@pytest.mark.rule("R12")
async def test_what_an_agent_sent_first_arrives_first(house: House) -> None:
    message = await house.hear("hello")
    seat = await house.agent.seated()
    house.mail.lying.append(lambda: send(house, "I am on it"))

    seat.say("done")

    await house.settled(message, "answered")
    assert await house.replies() == ["I am on it", "done"]


@pytest.mark.rule("R12")
async def test_what_an_agent_sent_before_it_died_arrives_before_the_failure_is_told(
    house: House,
) -> None:
    tick = await fall_due(house, await add(house))
    seat = await house.agent.seated()
    house.mail.lying.append(lambda: send(house, "I am on it"))

    seat.leave(3)

    await reached(house, tick, TickState.FAILED)
    assert [text.split()[0] for text in await house.replies()] == ["I", "The"]


@pytest.mark.rule("R13")
async def test_a_retry_is_told_what_was_sent_since_the_cursor_and_which_attempt_it_is(
    house: House,
) -> None:
    await send(house, "long ago")
    message = await house.hear("hello")
    seat = await house.agent.seated()
    assert seat.brief.sent == ()
    await send(house, "I am on it")
    await send(house, "x" * 1000)
    assert (await house.chat()).cursor == 0
    seat.fail("the model is away")
    await over(house, seat)
    house.clock.advance(RUNGS[0])

    again = await house.agent.seated(2)

    assert again.brief.attempt == 2
    assert again.brief.sent == ("I am on it", "x" * 500 + "…")
    again.say("done")
    await house.settled(message, "answered")
    await house.hear("thanks")
    assert (await house.agent.seated(3)).brief.sent == ()


@pytest.mark.rule("R13")
async def test_a_task_that_runs_again_is_told_what_it_sent(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        await send(house, "by an earlier tick")
        clock.tick()
        await fall_due(house, await add(house))
        await house.agent.seated()
        await send(house, "I am on it")

    async with open_house(tmp_path, clock=clock) as house:
        assert (await house.agent.seated()).brief.sent == ("I am on it",)


async def test_a_group_with_a_name_of_its_own_for_the_assistant_passes_it_on(house: House) -> None:
    def rename(tx: Tx) -> None:
        group = tx.groups.of_folder("family")
        assert group is not None
        tx.groups.save(replace(group, assistant_name="Mia"))

    await house.store.write(rename)
    await house.hear("hello")

    assert (await house.agent.seated()).brief.assistant_name == "Mia"


# --- people and things around it ------------------------------------------------------------------


async def send(house: House, text: str) -> None:
    """What `send_message` comes to."""
    key = f"cmd:{counting_id('c')}"
    words = Words(chat=CHAT, key=key, text=text, kind=Kind.REPLY)
    await house.store.write(lambda tx: outbound_of(house).put(tx, words))


def outbound_of(house: House) -> Outbound:
    return Outbound(
        channel_of=lambda _chat: house.channel,
        wake_delivery=house.delivery.wake,
        feed=house.feed,
        clock=house.clock,
        new_id=counting_id,
        speaker="Andy",
    )


def notices_of(house: House) -> Notices:
    return Notices(
        store=house.store,
        outbound=outbound_of(house),
        channel_of=lambda _chat: house.channel,
        clock=house.clock,
        free_disk=lambda: 1,
        min_free_disk=None,
    )


def tasks_of(house: House, poke: Callable[[], None] = lambda: None) -> Tasks:
    return Tasks(
        store=house.store,
        engine=house.engine,
        clock=house.clock,
        new_id=counting_id,
        timezone="UTC",
        poke=poke,
        changed=lambda _folder: None,
    )
