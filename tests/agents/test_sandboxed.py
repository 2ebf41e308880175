"""The agents room: who is alive, who is used again, and who has to go."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.domain.brief import AgentSettings
from hallporter.ports import Seat
from tests.agents.room import (
    PATIENCE,
    Room,
    batch,
    brief,
    demo,
    foreign,
    marked,
    next_block,
    next_exit,
    open_room,
    until,
)
from tests.fakes.clock import FakeClock

PUPPET = foreign("puppet.py")


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as opened:
        yield opened


# --- one agent per folder -------------------------------------------------------------------------


@pytest.mark.rule("R7")
@pytest.mark.requirement("queue.concurrency.one-per-group")
async def test_a_folder_has_one_live_agent_and_the_old_ones_exit_is_awaited(room: Room) -> None:
    await room.turn("echo one")
    old = room.pid()

    await room.turn("echo two", epoch=3)

    assert list(room.states()) == ["family"]
    assert marked(room.installation) == [room.pid()]
    assert room.pid() != old


@pytest.mark.rule("R7")
async def test_what_lies_in_the_input_folder_is_gone_before_an_agent_starts(room: Room) -> None:
    room.input().mkdir(parents=True)
    (room.input() / "000000000001.json").write_text('{"type": "message", "content": "echo old"}')
    (room.input() / "_close").touch()

    async with room.agents.seat(brief("echo new")) as seat:
        assert (await next_block(seat)).text == "new"
        assert list(room.input().iterdir()) == []
        await seat.feed(batch("echo newer", 2))
        assert (await next_block(seat)).text == "newer"


@pytest.mark.rule("R7")
async def test_two_folders_have_agents_side_by_side(room: Room) -> None:
    await room.turn("echo one", folder="family")
    await room.turn("echo two", folder="work")

    assert room.states() == {"family": "warm", "work": "warm"}


# --- late words -----------------------------------------------------------------------------------


@pytest.mark.rule("R8")
async def test_a_block_after_the_turn_is_late_and_carries_its_number_and_epoch(room: Room) -> None:
    room.strings().order("say('in time')")
    await room.turn("hello", settings=PUPPET, epoch=7)

    await room.strings().do("say('one more thing')")
    await room.strings().do("say(None)")
    await room.strings().do("say('and another')")
    await until(lambda: len(room.late) == 2)

    assert [late.text for late in room.late] == ["one more thing", "and another"]
    assert [late.number for late in room.late] == [1, 2]
    assert {(late.epoch, late.chat) for late in room.late} == {(7, "fake:family")}
    assert {late.agent for late in room.late} == {room.agents.live()[0].id}


@pytest.mark.rule("R8")
async def test_the_last_words_of_an_agent_that_is_being_closed_are_late(room: Room) -> None:
    room.strings().order("say('in time')")
    await room.turn("hello", settings=PUPPET)

    room.strings().order("while not (INBOX / '_close').exists(): time.sleep(0.01)")
    room.strings().order("say('farewell')")
    room.strings().order("leave()")
    await room.agents.forget(brief("").chat)

    assert [late.text for late in room.late] == ["farewell"]


@pytest.mark.rule("R8")
async def test_what_was_said_but_not_heard_before_the_turns_end_is_late(room: Room) -> None:
    room.strings().order("say('one'); say('two')")
    async with room.agents.seat(brief("hello", settings=PUPPET)) as seat:
        assert (await next_block(seat)).text == "one"
        await room.strings().do("pass")

    await until(lambda: room.late)
    assert [late.text for late in room.late] == ["two"]


# --- warm agents ----------------------------------------------------------------------------------


@pytest.mark.rule("R9")
@pytest.mark.requirement("idle.agent.stays-alive")
@pytest.mark.requirement("idle.timer.message-within-window")
@pytest.mark.requirement("queue.running.no-second-container")
async def test_a_warm_agent_serves_the_turn_right_after_its_own(room: Room) -> None:
    await room.turn("echo one", epoch=1)
    old = room.pid()

    (block,) = await room.turn("echo two", epoch=2, through=2)

    assert (block.text, room.pid()) == ("two", old)


@pytest.mark.rule("R9")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"epoch": 3}, id="someone else had the chat"),
        pytest.param({"epoch": 1}, id="the epoch stands still"),
        pytest.param(
            {"epoch": 2, "settings": replace(demo(), pids=100)}, id="its settings are others"
        ),
        pytest.param(
            {"epoch": 2, "session_no": 1},
            id="a new session began",
            marks=pytest.mark.rule("R11"),
        ),
    ],
)
async def test_any_other_warm_agent_is_closed_for_a_fresh_one(
    room: Room, change: dict[str, object]
) -> None:
    await room.turn("echo one", epoch=1)
    old = room.pid()

    await room.turn("echo two", through=2, **change)

    assert room.pid() != old
    assert marked(room.installation) == [room.pid()]


@pytest.mark.rule("R11")
async def test_a_dismissed_agent_is_closed_at_the_end_of_its_turn(room: Room) -> None:
    async with room.agents.seat(brief("echo one")) as seat:
        await next_block(seat)
        seat.dismiss()

    await room.gone()


@pytest.mark.rule("R9")
async def test_a_warm_agent_killed_before_it_took_its_file_is_no_failure(room: Room) -> None:
    settings = _stopped_after_answering(room)
    await room.turn("one", settings=settings, epoch=1)
    old = room.pid()

    async with room.agents.seat(brief("two", settings=settings, epoch=2, through=2)) as seat:
        await seat.feed(batch("three", 3))
        os.kill(old, signal.SIGKILL)
        room.strings().order("say(json.dumps(start['messages']), through=start['through'])")
        block = await next_block(seat)
        assert room.pid() != old

    assert block.through == 3
    assert "two" in str(block.text)
    assert "three" in str(block.text)


@pytest.mark.rule("R9")
async def test_a_follow_up_fed_after_the_death_reaches_the_fresh_agent(room: Room) -> None:
    settings = _stopped_after_answering(room)
    await room.turn("one", settings=settings, epoch=1)
    old = room.pid()

    async with room.agents.seat(brief("two", settings=settings, epoch=2, through=2)) as seat:
        os.kill(old, signal.SIGKILL)
        room.strings().order("say('fresh', through=start['through'])")
        assert (await next_block(seat)).through == 2
        assert await seat.feed(batch("three", 3))
        room.strings().order("say(take(), through=3)")
        block = await next_block(seat)

    assert (block.text, block.through) == ("three", 3)


@pytest.mark.rule("R9")
async def test_a_warm_agent_killed_after_it_took_its_file_is_a_failure(room: Room) -> None:
    room.strings().order("say('one', through=1)")
    await room.turn("one", settings=PUPPET, epoch=1)

    async with room.agents.seat(brief("two", settings=PUPPET, epoch=2, through=2)) as seat:
        await room.strings().do("take()")
        os.kill(room.pid(), signal.SIGKILL)
        end = await next_exit(seat)

    assert (end.code, end.taken) == (137, 2)


@pytest.mark.rule("R9")
@pytest.mark.rule("R10")
async def test_nobody_takes_the_place_of_a_warm_agent_that_is_stopped(room: Room) -> None:
    settings = _stopped_after_answering(room)
    await room.turn("one", settings=settings, epoch=1)

    async with room.agents.seat(brief("two", settings=settings, epoch=2, through=2)) as seat:
        async with asyncio.timeout(PATIENCE):
            await seat.stop()
        await next_exit(seat)

    assert marked(room.installation) == []


@pytest.mark.rule("R9")
async def test_a_warm_agent_that_spoilt_its_input_folder_is_replaced_at_once(room: Room) -> None:
    room.strings().order("say('one', through=1)")
    await room.turn("one", settings=PUPPET, epoch=1)
    await room.strings().do("(INBOX / '000000000001.json').mkdir()")
    await room.strings().do("DOING.unlink(); time.sleep(600)")
    old = room.pid()

    room.strings().order("say('fresh', through=2)")
    (block,) = await room.turn("two", settings=PUPPET, epoch=2, through=2)

    assert block.text == "fresh"
    assert room.pid() != old


async def test_a_seat_has_nothing_more_to_tell_after_an_exit(room: Room) -> None:
    async with room.agents.seat(brief("crash")) as seat:
        await next_exit(seat)

        assert [event async for event in seat.events()] == []


async def test_a_seat_refuses_a_follow_up_once_its_agent_is_gone(room: Room) -> None:
    async with room.agents.seat(brief("crash")) as seat:
        await next_exit(seat)

        assert not await seat.feed(batch("echo two", 2))


# --- room -----------------------------------------------------------------------------------------


@pytest.mark.rule("R15")
@pytest.mark.requirement("queue.concurrency.max-containers")
async def test_the_least_recently_used_warm_agent_makes_room(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_room(tmp_path, max_live=2, clock=clock) as room:
        for folder, epoch in (("a", 1), ("b", 1), ("a", 2)):
            clock.tick()
            await room.turn("echo x", folder=folder, epoch=epoch, through=epoch)

        await room.turn("echo x", folder="c")

        assert room.states() == {"a": "warm", "c": "warm"}
        assert len(marked(room.installation)) == 2


@pytest.mark.rule("R15")
async def test_busy_and_warm_together_never_exceed_the_limit(tmp_path: Path) -> None:
    async with open_room(tmp_path, max_live=2) as room:
        most = 0

        async def visit(folder: str) -> None:
            nonlocal most
            async with room.agents.seat(brief("echo x", folder=folder)) as seat:
                await next_block(seat)
                most = max(most, len(room.states()), len(marked(room.installation)))

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            for number in range(6):
                tasks.create_task(visit(f"f{number}"))

        assert most == 2


@pytest.mark.rule("R15")
@pytest.mark.requirement("queue.concurrency.starts-when-slot-frees")
async def test_one_who_waits_for_room_gets_it_when_a_turn_ends(tmp_path: Path) -> None:
    async with open_room(tmp_path, max_live=1) as room, asyncio.TaskGroup() as tasks:
        async with room.agents.seat(brief("echo one", folder="a")) as seat:
            await next_block(seat)
            waiting = tasks.create_task(room.turn("echo two", folder="b"))
            await asyncio.sleep(0)
            assert list(room.states()) == ["a"]

        async with asyncio.timeout(PATIENCE):
            (block,) = await waiting

        assert block.text == "two"
        assert list(room.states()) == ["b"]


@pytest.mark.rule("R15")
async def test_a_start_that_fails_takes_no_room(tmp_path: Path) -> None:
    async with open_room(tmp_path, max_live=1) as room:
        nowhere = replace(PUPPET, command=("/nowhere/agent",))
        with pytest.raises(Exception, match="/nowhere/agent"):
            await room.turn("hello", settings=nowhere)

        await room.turn("echo one", folder="work")


# --- making an end --------------------------------------------------------------------------------


@pytest.mark.requirement("idle.timer.starts-after-result")
@pytest.mark.requirement("idle.timer.writes-close")
@pytest.mark.requirement("idle.exit.container-removed")
async def test_an_agent_nobody_came_back_for_is_closed(tmp_path: Path) -> None:
    clock = FakeClock()
    settings = replace(PUPPET, idle_timeout=timedelta(minutes=10))
    async with open_room(tmp_path, clock=clock) as room:
        room.strings().order("say('hello')")
        room.strings().order("while not (INBOX / '_close').exists(): time.sleep(0.01)")
        room.strings().order("Path('closed').touch()")
        room.strings().order("leave()")
        await room.turn("hello", settings=settings)

        clock.advance(timedelta(minutes=10))
        await room.gone()

        assert (room.files() / "closed").exists()


@pytest.mark.requirement("idle.timer.starts-after-result")
async def test_a_late_word_and_a_new_turn_start_the_idle_time_anew(tmp_path: Path) -> None:
    clock = FakeClock()
    settings = replace(PUPPET, idle_timeout=timedelta(minutes=10))
    async with open_room(tmp_path, clock=clock) as room:
        room.strings().order("say('hello')")
        await room.turn("hello", settings=settings)
        clock.advance(timedelta(minutes=6))
        await room.strings().do("say('late')")
        await until(lambda: room.late)
        clock.advance(timedelta(minutes=6))
        room.strings().order("say(take())")
        (block,) = await room.turn("more", settings=settings, epoch=2, through=2)
        assert block.text == "more"
        clock.advance(timedelta(minutes=6))
        await asyncio.sleep(0)
        assert room.states() == {"family": "warm"}

        clock.advance(timedelta(minutes=4))
        await room.gone()


@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
async def test_a_program_that_ignores_close_and_sigterm_is_killed(
    tmp_path: Path, sandbox: str
) -> None:
    async with open_room(tmp_path, sandbox=sandbox) as room:
        await room.turn("hello", settings=foreign("bad.py", "stubborn", sandbox=sandbox))

        async with asyncio.timeout(PATIENCE):
            await room.agents.forget(brief("").chat)

        assert marked(room.installation) == []
        (log,) = (room.files() / "logs").iterdir()
        assert log.read_text().endswith("[exit code 137]\n")


@pytest.mark.requirement("signal.term.on-timeout-and-shutdown")
async def test_a_program_that_ignores_close_is_sent_sigterm(room: Room) -> None:
    room.strings().order(_ON_SIGTERM)
    room.strings().order("say('hello')")
    await room.turn("hello", settings=PUPPET)

    room.agents.close()
    await room.gone()

    assert (room.files() / "terminated").exists()


@pytest.mark.requirement("signal.term.on-timeout-and-shutdown")
async def test_an_agent_whose_turn_failed_is_sent_sigterm(room: Room) -> None:
    room.strings().order(_ON_SIGTERM)
    room.strings().order("say('hello')")
    with pytest.raises(TimeoutError):
        async with room.agents.seat(brief("hello", settings=PUPPET)) as seat:
            await _time_out_after_a_block(seat)

    await room.gone()

    assert (room.files() / "terminated").exists()


async def test_the_room_closes_although_an_agent_is_warm(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), open_room(tmp_path) as room:
        await room.turn("echo one")


async def test_the_end_of_the_house_ends_an_agent_that_ignores_it(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), open_room(tmp_path) as room:
        await room.turn("hello", settings=foreign("bad.py", "stubborn"))

    assert marked(room.installation) == []


async def test_an_agent_is_named_after_its_folder_and_seen_from_outside(room: Room) -> None:
    await room.turn("echo one")

    (info,) = room.agents.live()
    assert info.id.startswith("hallporter-family-")
    assert (info.folder, info.state) == ("family", "warm")


_ON_SIGTERM = """
import signal
signal.signal(signal.SIGTERM, lambda *_: (Path('terminated').touch(), os._exit(143)))
"""


async def _time_out_after_a_block(seat: Seat) -> None:
    await next_block(seat)
    raise TimeoutError


def _stopped_after_answering(room: Room) -> AgentSettings:
    """A puppet that answers once and then looks at nothing any more until it is killed."""
    room.strings().order("say('one', through=1); DOING.unlink(); time.sleep(600)")
    return PUPPET
