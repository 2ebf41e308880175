"""A sign of life while an agent works, and the hard limit that ends one without any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.switchboard.house import CHAT, SETTINGS, House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        await opened.register()
        yield opened


@pytest.mark.requirement("typing.shown.before-dispatch", "typing.shown.while-running")
@pytest.mark.requirement("typing.cleared.at-response")
async def test_typing_is_shown_from_the_claim_to_the_answer(house: House) -> None:
    message = await house.hear("hello")
    seat = await house.agent.seated()
    seat.say("one moment", idle=False)
    await house.settled(message, "answered")
    assert house.channel.typings == [(CHAT, True)]

    seat.say("hi")
    await house.agent.over(seat)
    await house.idle()

    assert house.channel.typings == [(CHAT, True), (CHAT, False)]


async def test_typing_is_renewed_before_the_network_lets_it_fade(house: House) -> None:
    await house.hear("hello")
    seat = await house.agent.seated()
    house.clock.advance(timedelta(seconds=9))
    await house.hear("still there?")
    await seat.wait_fed()

    assert house.channel.typings == [(CHAT, True), (CHAT, True)]


async def test_typing_is_cleared_when_the_turn_fails(house: House) -> None:
    message = await house.hear("hello")
    (await house.agent.seated()).fail("overloaded")
    await house.settled(message, "failed")
    await house.idle()

    assert house.channel.typings[-1] == (CHAT, False)


async def test_a_network_that_cannot_show_typing_costs_no_answer(house: House) -> None:
    house.channel.is_down = True
    house.channel.typings = None  # type: ignore[assignment]  # any call raises
    message = await house.hear("hello")
    (await house.agent.seated()).say("hi")

    await house.settled(message, "answered")


async def test_an_agent_that_says_nothing_is_ended_by_the_hard_limit(house: House) -> None:
    house.settings.append(replace(SETTINGS, timeout=timedelta(seconds=0.2)))
    message = await house.hear("hello")
    seat = await house.agent.seated()

    fate = await house.settled(message, "failed")

    assert any("no answer within" in step.why for step in fate.steps)
    assert seat.is_dismissed


@pytest.mark.requirement("container.output.resets-hard-timeout")
async def test_the_hard_limit_runs_from_the_last_block(house: House) -> None:
    limit = 1.0  # seconds
    house.settings.append(replace(SETTINGS, timeout=timedelta(seconds=limit)))
    message = await house.hear("hello")
    seat = await house.agent.seated()
    for number in range(4):  # longer in all than the limit, and never so long without a word
        await asyncio.sleep(limit * 0.4)
        seat.say(f"part {number}", idle=False)
    seat.say("the end")

    await house.agent.over(seat)

    assert await house.state(message) == "answered"
    assert (await house.replies())[-1] == "the end"
