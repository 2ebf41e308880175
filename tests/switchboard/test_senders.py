"""Whose words count in a group, and what becomes of the others'."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hallporter.domain.group import Others, SenderChange
from hallporter.domain.ids import ChatId
from hallporter.domain.message import Inbound, Kind, State
from hallporter.switchboard.groups import GroupChange, NewGroup
from tests.fakes.clock import START
from tests.switchboard.house import CHAT, House, open_house

ADA = SenderChange(allow=frozenset({"Ada"}))
BOB = Inbound(
    chat=CHAT, ext_id="b1", sender="bob@net", sender_name="Ada", text="@Andy hi", sent_at=START
)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        await opened.register(trigger="@Andy")
        yield opened


async def rule(house: House, others: Others) -> None:
    change = GroupChange(senders=replace(ADA, others=others))
    await house.groups.change("family", change)


async def test_words_of_someone_not_allowed_are_ignored_and_not_kept(house: House) -> None:
    await rule(house, Others.IGNORE)

    message = (await house.intake.accept(BOB)).message

    fate = await house.fate(message)
    assert fate.state == State.IGNORED
    assert fate.message.text == ""
    assert "the sender is not allowed in this group" in str(fate.steps)
    await house.idle()
    assert house.agent.seats == []


@pytest.mark.parametrize(
    "words",
    [{"text": "@Andy hi"}, {"text": "hi", "mentions_us": True}, {"text": "/help"}],
    ids=["trigger", "mention", "slash line"],
)
async def test_words_that_are_only_stored_wake_nobody(
    house: House, words: dict[str, object]
) -> None:
    await rule(house, Others.STORE)

    message = (await house.intake.accept(replace(BOB, **words))).message  # type: ignore[arg-type]

    assert (message.state, message.kind, message.wakes) == (State.WAITING, Kind.TEXT, False)
    assert "not allowed in this group: it goes along" in message.why
    await house.idle()
    assert house.agent.seats == []
    assert await house.replies() == []


async def test_words_that_are_only_stored_go_along_with_what_an_allowed_one_says(
    house: House,
) -> None:
    await rule(house, Others.STORE)
    bob = await house.hear("@Andy from me too", sender="Bob")
    await house.hear("@Andy hello")

    seat = await house.agent.seated()
    assert seat.texts() == ["@Andy from me too", "@Andy hello"]
    seat.say("hello, both")
    await house.settled(bob, "answered")


@pytest.mark.parametrize("others", list(Others))
async def test_in_main_too_only_the_allowed_ones_wake(tmp_path: Path, others: Others) -> None:
    async with open_house(tmp_path) as house:
        new = NewGroup(
            chat=CHAT,
            name="Main",
            folder="main",
            is_main=True,
            senders=replace(ADA, others=others),
        )
        await house.groups.add(new)
        await house.hear("do it", sender="Bob")
        await house.idle()
        assert house.agent.seats == []

        await house.hear("hello")

        texts = (await house.agent.seated()).texts()
        assert texts == (["hello"] if others is Others.IGNORE else ["do it", "hello"])


@pytest.mark.parametrize("others", list(Others))
async def test_slash_lines_of_people_not_allowed_are_not_obeyed(
    house: House, others: Others
) -> None:
    await rule(house, others)
    await house.hear("@Andy work")
    seat = await house.agent.seated()

    line = await house.hear("/stop", sender="Bob")

    assert line.kind is Kind.TEXT
    assert await house.replies() == []
    seat.say("done")
    await house.until(house.replies)
    assert await house.replies() == ["done"]


async def test_an_empty_list_means_nobody(house: House) -> None:
    change = GroupChange(senders=SenderChange(allow=frozenset()))
    await house.groups.change("family", change)

    message = await house.hear("@Andy hello")

    assert message.state is State.IGNORED


async def test_a_rule_acts_from_the_next_message_on_and_only_in_its_group(house: House) -> None:
    other = ChatId("fake:other")
    await house.register(other)
    before = await house.hear("earlier", sender="Bob")
    await rule(house, Others.IGNORE)

    assert before.text == "earlier"
    assert (await house.hear("later", sender="Bob")).state is State.IGNORED
    assert (await house.hear("elsewhere", other, sender="Bob")).state is State.QUEUED


async def test_a_display_name_lets_nobody_in(house: House) -> None:
    await rule(house, Others.IGNORE)

    assert (await house.intake.accept(BOB)).message.state is State.IGNORED
    allowed = replace(BOB, ext_id="b2", sender="Ada", sender_name="Somebody")
    assert (await house.intake.accept(allowed)).message.state is State.QUEUED
