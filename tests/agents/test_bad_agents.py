"""Bad agents: each message has its fate, the chat is told, nothing is left, and life goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.domain.brief import AgentSettings
from tests.agents.house import RealHouse, open_real_house
from tests.agents.room import MAX_OUTPUT, foreign, marked, until
from tests.sandboxes import boxes

GOOD = foreign("good.py")
SECOND = timedelta(seconds=1)


@pytest.fixture(params=["process", "bubblewrap"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RealHouse]:
    async with open_real_house(tmp_path, sandbox=request.param) as opened:
        yield opened


def bad(deed: str, *words: str, timeout: timedelta = timedelta(minutes=30)) -> AgentSettings:
    return foreign("bad.py", deed, *words, timeout=timeout)


async def the_next_message_works(house: RealHouse, *, attempts: int = 0) -> None:
    house.employ(GOOD)
    message = await house.hear("are you well?")
    if attempts:
        await house.try_again(attempts)
    fate = await house.settled(message, "answered")
    assert fate.replies
    assert (await house.replies())[-1].startswith("heard: ")
    assert "are you well?" in (await house.replies())[-1]
    assert list(house.room.states()) == ["family"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    deed: str
    why: str
    timeout: timedelta = timedelta(minutes=30)


FAILURES = [
    Failure(deed="rubbish", why="the agent ended without an answer"),
    Failure(deed="half_a_marker", why="the agent ended without an answer"),
    Failure(deed="half_a_block", why="could not be read (the output ended inside a block)"),
    Failure(deed="half_a_marker_and_hangs", why="no answer within 1 s", timeout=SECOND),
    Failure(deed="giant_block", why="could not be read (a block is larger than"),
    Failure(deed="nothing", why="the agent ended without an answer"),
    Failure(deed="closes_stdout", why="no answer within 1 s", timeout=SECOND),
    Failure(deed="error", why="the model is away !!!"),
    Failure(deed="unknown_status", why="could not be read (status"),
    Failure(deed="killed", why="the agent was killed (out of memory, or by hand)"),
]


@pytest.mark.rule("R5")
@pytest.mark.rule("R14")
@pytest.mark.requirement("timeout.hard.stops-the-container")
@pytest.mark.requirement("container.output.error-detail")
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.deed)
async def test_an_agent_that_fails_is_tried_again_and_the_chat_is_told(
    house: RealHouse, failure: Failure
) -> None:
    house.employ(bad(failure.deed, timeout=failure.timeout))

    message = await house.hear("hello")
    await house.settled(message, "failed")
    assert failure.why in await house.why(message)
    assert await house.replies() == []

    await house.try_again(1)
    told = await house.told()
    assert told.startswith("I have no answer yet: ")
    assert failure.why in told
    assert len(told) < 1000

    await the_next_message_works(house, attempts=2)
    await house.settled(message, "answered")


@pytest.mark.rule("R14")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("/nowhere/agent",), "/nowhere/agent"),
        (("no-such-agent",), "'no-such-agent' is not found"),
        (("./agent",), "is not executable: chmod +x it"),
        ((), "has no command"),
    ],
)
async def test_an_agent_that_can_never_start_is_told_of_at_once(
    house: RealHouse, command: tuple[str, ...], why: str
) -> None:
    house.room.files().mkdir(parents=True)
    (house.room.files() / "agent").write_text("#!/bin/sh\n")
    house.employ(replace(GOOD, command=command))

    message = await house.hear("hello")
    await house.settled(message, "failed")

    (told,) = await house.replies()
    assert told.startswith("I could not answer: ")
    assert why in told
    assert marked(house.room.installation) == []
    await the_next_message_works(house)
    await house.settled(message, "answered")


@pytest.mark.parametrize(
    ("deed", "reply"),
    [
        ("flood_then_an_answer", "after all that"),
        ("bad_utf8", "caf\ufffd \ufffd"),
        ("stubborn", "I stay"),
        ("never_reads", "I did not listen"),
        ("never_reads_and_leaves", "I did not listen"),
        ("huge_session", "remember me"),
    ],
)
async def test_an_agent_that_answers_all_the_same_is_heard(
    house: RealHouse, deed: str, reply: str
) -> None:
    house.employ(bad(deed))

    message = await house.hear("hello, " + "x" * 90_000)  # more than a pipe holds
    await house.settled(message, "answered")

    assert await house.replies() == [reply]
    assert (await house.house.chat()).session_id is None
    await the_next_message_works(house)


async def test_of_a_flood_the_log_keeps_the_beginning_and_all_of_it_is_read(
    house: RealHouse,
) -> None:
    house.employ(bad("flood_then_an_answer"))

    message = await house.hear("hello")
    await house.settled(message, "answered")
    await house.room.gone()

    (log,) = (house.room.files() / "logs").iterdir()
    assert MAX_OUTPUT < log.stat().st_size < MAX_OUTPUT + 100
    assert log.read_text().endswith("\n[stdout cut here]\n\n[exit code 0]\n")


async def test_what_an_agent_forked_is_gone_with_it(house: RealHouse) -> None:
    seconds = boxes.odd_seconds()
    house.employ(bad("forks", seconds))

    message = await house.hear("hello")
    await house.settled(message, "answered")
    await house.room.gone()

    assert boxes.sleepers(seconds) == []
    await the_next_message_works(house)


async def test_a_child_that_hides_and_keeps_the_pipes_does_not_hold_up_the_chat(
    tmp_path: Path,
) -> None:
    """Only a plain process cannot find it: the sandbox that is none says so itself."""
    seconds = boxes.odd_seconds()
    async with asyncio.timeout(40), open_real_house(tmp_path) as house:
        house.employ(bad("forks_in_hiding", seconds))
        message = await house.hear("hello")
        await house.settled(message, "answered")
        await house.room.gone()
        await the_next_message_works(house)
    await _end(seconds)


async def _end(seconds: str) -> None:
    for pid in boxes.sleepers(seconds):
        os.kill(pid, signal.SIGKILL)
    await until(lambda: not boxes.sleepers(seconds))


async def test_a_program_that_talks_faster_than_we_write_is_heard_in_full_and_in_order(
    house: RealHouse,
) -> None:
    count = 600
    house.employ(bad("chatters", str(count)))
    message = await house.hear("tell me everything")

    fate = await house.settled(message, "answered")
    async with asyncio.timeout(20):
        while len(fate.replies) <= count:
            fate = await house.house.fate(message)

    texts = await house.house.store.read(lambda tx: tx.messages.page(message.chat, 0, 2 * count))
    said = [one.text for one in texts if one.is_bot]
    assert said == [*(f"word {number}" for number in range(count)), "done"]
