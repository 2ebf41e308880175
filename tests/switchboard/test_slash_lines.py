"""What people say to the host itself, and what it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.ladder import RUNGS
from hallporter.domain.slash import Slash
from tests.switchboard.house import CHAT, House, open_house

if TYPE_CHECKING:
    from hallporter.books import Tx


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        await opened.register()
        yield opened


async def answer(house: House, line: str) -> str:
    await house.hear(line)
    return (await house.replies())[-1]


async def test_help_names_every_word_and_how_to_talk(house: House) -> None:
    text = await answer(house, "/help")

    assert text.startswith("Write a message and Andy answers.")
    assert all(f"`/{word}`" in text for word in Slash)


async def test_help_names_the_trigger_where_one_is_needed(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.register(trigger="@Andy")

        assert "Begin a message with `@Andy`" in await answer(house, "/help")


async def test_whoami_tells_how_the_sender_is_known(house: House) -> None:
    text = await answer(house, "/whoami")

    assert "You are **Ada**" in text
    assert f"`{CHAT}`" in text


async def test_status_tells_what_goes_on(house: House) -> None:
    assert "nothing is waiting" in await answer(house, "/status")
    await house.hear("hello")
    seat = await house.agent.seated()
    house.clock.advance(timedelta(seconds=7))

    text = await answer(house, "/status")

    assert "an answer is being made, for 7 s" in text
    assert "agent: demo, sandbox: process" in text
    assert "1 running, 0 waiting" in text
    seat.fail("overloaded")
    await house.agent.over(seat)
    await house.idle()
    assert "a message waits for its turn" in await answer(house, "/status")


async def test_status_tells_of_a_parked_chat(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.register()
        message = await house.hear("hello")
        for rung in (*RUNGS, timedelta(0)):
            seat = await house.agent.seated(len(house.agent.seats) or 1)
            seat.fail("overloaded")
            await house.agent.over(seat)
            await house.idle()
            house.clock.advance(rung)
            if rung:
                await house.agent.seated(len(house.agent.seats) + 1)
        await house.settled(message, "failed")

        assert "your next message tries again" in await answer(house, "/status")


async def test_a_slash_line_is_answered_once_even_when_it_is_handed_in_twice(
    house: House,
) -> None:
    for _ in range(2):
        await house.hear("/help", ext_id="x1")

    assert len(await house.replies()) == 1


async def test_a_slash_line_wakes_nobody(house: House) -> None:
    line = await house.hear("/help")
    await house.idle()

    assert await house.state(line) == "command"
    assert house.agent.seats == []


async def test_a_slash_line_has_no_part_in_the_turn_that_passes_it(house: House) -> None:
    line = await house.hear("/status")
    message = await house.hear("hello")
    (await house.agent.seated()).say("hi")
    await house.settled(message, "answered")

    fate = await house.fate(line)

    assert [step.what for step in fate.steps] == ["stored", "taken as a command to the host"]
    assert fate.replies == ()


async def test_an_unknown_slash_word_is_for_the_agent(house: House) -> None:
    await house.hear("/weather tomorrow")

    assert (await house.agent.seated()).texts() == ["/weather tomorrow"]


@pytest.mark.rule("R10")
async def test_stop_with_nothing_running_says_so(house: House) -> None:
    assert await answer(house, "/stop") == "Nothing is running."


@pytest.mark.rule("R10")
async def test_stop_ends_a_ladder_and_the_next_message_begins_at_once(house: House) -> None:
    failed = await house.hear("one")
    seat = await house.agent.seated()
    seat.fail("overloaded")
    await house.agent.over(seat)
    await house.idle()

    text = await answer(house, "/stop")

    assert text == "Stopped: what was waiting will not be answered."
    assert await house.state(failed) == "stopped"
    await house.hear("two")
    again = await house.agent.seated(2)
    assert again.texts() == ["two"]
    assert again.brief.attempt == 1


@pytest.mark.rule("R10")
async def test_what_was_stopped_while_it_waited_has_no_part_in_later_answers(
    house: House,
) -> None:
    stopped = await house.hear("one")
    seat = await house.agent.seated()
    seat.fail("overloaded")
    await house.agent.over(seat)
    await house.idle()
    await house.hear("/stop")
    later = await house.hear("two")
    (await house.agent.seated(2)).say("to two")
    await house.settled(later, "answered")

    fate = await house.fate(stopped)

    assert fate.state == "stopped"
    assert fate.replies == ()
    assert "answered" not in [step.what for step in fate.steps]
    assert "the turn failed" in [step.what for step in fate.steps]


@pytest.mark.rule("R10")
async def test_stop_leaves_what_came_after_the_agent_was_given_its_batch(house: House) -> None:
    house.agent.takes_more = False
    stopped = await house.hear("one")
    await house.agent.seated()
    waiting = await house.hear("two")

    await house.hear("/stop")

    assert await house.state(stopped) == "stopped"
    again = await house.agent.seated(2)
    assert again.texts() == ["two"]
    again.say("to two")
    await house.settled(waiting, "answered")


@pytest.mark.rule("R10")
async def test_an_agent_whose_claim_no_longer_counts_is_stopped_even_without_the_signal(
    house: House,
) -> None:
    await house.hear("one")
    seat = await house.agent.seated()

    def claim(tx: Tx) -> None:
        chat = tx.chats.lock(CHAT)
        tx.chats.save(replace(chat, epoch=chat.epoch + 1))

    await house.store.write(claim)
    seat.say("still talking")

    await house.agent.over(seat)
    assert seat.is_stopped
    assert await house.replies() == []


@pytest.mark.rule("R11")
async def test_new_forgets_the_session_and_closes_a_warm_agent(house: House) -> None:
    message = await house.hear("one")
    (await house.agent.seated()).say("hi", session="s1")
    await house.settled(message, "answered")
    before = await house.chat()

    text = await answer(house, "/new")

    after = await house.chat()
    assert "fresh session" in text
    assert (before.session_id, after.session_id) == ("s1", None)
    assert after.session_no == before.session_no + 1
    assert house.agent.forgotten == [CHAT]
    await house.hear("two")
    assert (await house.agent.seated(2)).brief.session_id is None
