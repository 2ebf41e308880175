"""What every agent keeps: one test for each clause of the port."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hallporter.domain.brief import Batch, Brief
from hallporter.domain.errors import (
    AgentFailedError,
    AgentRefusedError,
    RefusedError,
    UnavailableError,
)
from hallporter.domain.ids import ChatId
from hallporter.ports import Agent
from tests.agents.room import batch, brief, demo, next_block, next_exit, open_room, until
from tests.fakes.agent import ScriptedAgent, ScriptedSeat

ADAPTERS = ("process", "bubblewrap", "scripted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An agent under the contract, and the troubles a test can put in its way."""

    agent: Agent
    brief: Callable[..., Brief]
    here: Callable[[], list[int]]  # who is alive, each by a number of its own
    refuse: Callable[[Brief], Brief]
    hinder: Callable[[], None]


class ScriptedDemo:
    """The scripted agent, put through the part of the demo agent that the contract needs."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.script = ScriptedAgent()
        self._tasks = tasks

    @contextlib.asynccontextmanager
    async def seat(self, brief: Brief) -> AsyncIterator[ScriptedSeat]:
        async with self.script.seat(brief) as seat:
            playing = self._tasks.create_task(_play(seat))
            try:
                yield seat
            finally:
                playing.cancel()

    async def forget(self, chat: ChatId) -> None:
        await self.script.forget(chat)

    def refuse(self, brief: Brief) -> Brief:
        self.script.trouble = AgentRefusedError("there is no such program")
        return brief

    def hinder(self) -> None:
        self.script.trouble = AgentFailedError("the folder is in the way")


async def _play(seat: ScriptedSeat) -> None:
    _answer(seat, seat.brief.batch)
    for number in itertools.count(1):
        _answer(seat, await seat.wait_fed(number))


def _answer(seat: ScriptedSeat, given: Batch) -> None:
    match given.lines[-1].text.split():
        case ["echo", word]:
            seat.say(word, through=given.through)
        case ["answer", "in", "2", "parts"]:
            seat.say("Part 1 of 2.", idle=False)
            seat.say("Part 2 of 2.")
        case ["crash"]:
            seat.leave(3)


@pytest.fixture(params=ADAPTERS)
async def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Adapter]:
    if request.param == "scripted":
        async with asyncio.TaskGroup() as tasks:
            scripted = ScriptedDemo(tasks)
            yield Adapter(
                agent=scripted,
                brief=brief,
                here=lambda: [len(scripted.script.seats)] * scripted.script.live,
                refuse=scripted.refuse,
                hinder=scripted.hinder,
            )
        return
    settings = demo(request.param)

    def without_a_program(given: Brief) -> Brief:
        nowhere = replace(settings, kind="command", command=("/nowhere/agent",))
        return replace(given, settings=nowhere)

    async with open_room(tmp_path, sandbox=request.param) as room:

        def put_a_file_in_the_way() -> None:
            room.input().parent.parent.mkdir(parents=True)
            room.input().parent.write_text("not a folder")

        yield Adapter(
            agent=room.agents,
            brief=lambda text, **more: brief(text, settings=settings, **more),
            here=lambda: [info.pid for info in room.agents.live()],
            refuse=without_a_program,
            hinder=put_a_file_in_the_way,
        )


async def test_a_seat_gives_blocks_and_then_an_exit(adapter: Adapter) -> None:
    async with adapter.agent.seat(adapter.brief("answer in 2 parts")) as seat:
        first, second = await next_block(seat), await next_block(seat)
        await seat.feed(batch("crash", 2))
        end = await next_exit(seat)

    assert [first.text, second.text] == ["Part 1 of 2.", "Part 2 of 2."]
    assert [first.idle, second.idle] == [False, True]
    assert end.code != 0


async def test_a_block_never_reaches_beyond_what_was_given(adapter: Adapter) -> None:
    async with adapter.agent.seat(adapter.brief("echo one", through=7)) as seat:
        block = await next_block(seat)

    assert (block.text, block.is_error) == ("one", False)
    assert block.through == 7


async def test_a_follow_up_reaches_the_running_agent_and_a_later_block_covers_it(
    adapter: Adapter,
) -> None:
    async with adapter.agent.seat(adapter.brief("echo one", through=1)) as seat:
        first = await next_block(seat)
        was_taken = await seat.feed(batch("echo two", 2))
        second = await next_block(seat)

    assert was_taken
    assert (first.text, first.through) == ("one", 1)
    assert (second.text, second.through) == ("two", 2)


async def test_an_exit_says_how_much_was_taken_up(adapter: Adapter) -> None:
    async with adapter.agent.seat(adapter.brief("crash", through=4)) as seat:
        assert (await next_exit(seat)).taken == 4


async def test_a_stop_makes_an_end_and_returns(adapter: Adapter) -> None:
    async with adapter.agent.seat(adapter.brief("work slowly for 60 s")) as seat:
        async with asyncio.timeout(5):
            await seat.stop()
        await next_exit(seat)

    assert adapter.here() == []


async def test_a_dismissed_agent_is_not_used_again(adapter: Adapter) -> None:
    async with adapter.agent.seat(adapter.brief("echo one")) as seat:
        await next_block(seat)
        before = adapter.here()
        seat.dismiss()

    async with adapter.agent.seat(adapter.brief("echo two", through=2, epoch=2)) as seat:
        assert (await next_block(seat)).text == "two"
        assert len(adapter.here()) == 1
        assert adapter.here() != before


async def test_a_forgotten_warm_agent_is_closed(adapter: Adapter) -> None:
    given = adapter.brief("echo one")
    async with adapter.agent.seat(given) as seat:
        await next_block(seat)

    await adapter.agent.forget(given.chat)

    assert adapter.here() == []


async def test_an_agent_at_work_is_not_forgotten(adapter: Adapter) -> None:
    given = adapter.brief("echo one")
    async with adapter.agent.seat(given) as seat:
        await next_block(seat)
        await adapter.agent.forget(given.chat)
        await seat.feed(batch("echo two", 2))
        assert (await next_block(seat)).text == "two"


async def test_a_turn_that_breaks_off_leaves_no_agent(adapter: Adapter) -> None:
    with pytest.raises(AgentFailedError, match="broke off"):
        async with adapter.agent.seat(adapter.brief("echo one")):
            raise AgentFailedError("the turn broke off")

    await until(lambda: adapter.here() == [])


async def test_a_start_that_can_never_work_is_refused(adapter: Adapter) -> None:
    with pytest.raises(RefusedError):
        async with adapter.agent.seat(adapter.refuse(adapter.brief("echo one"))):
            pass

    assert adapter.here() == []


async def test_a_start_that_may_work_later_is_unavailable(adapter: Adapter) -> None:
    adapter.hinder()

    with pytest.raises(UnavailableError):
        async with adapter.agent.seat(adapter.brief("echo one")):
            pass

    assert adapter.here() == []
