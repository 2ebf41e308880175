"""Our own words do not come in again: networks hand them back, and we know them by their id."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hallporter.domain.ids import ChatId
from hallporter.domain.message import Inbound, Kind, State
from hallporter.switchboard.groups import NewGroup
from tests.fakes.clock import START
from tests.switchboard.house import CHAT, House, open_house


async def answered(house: House, text: str) -> list[tuple[ChatId, str, str]]:
    """What the network was given: chat, body, id."""
    message = await house.hear("@Andy hello")
    (await house.agent.seated()).say(text)
    await house.settled(message, "answered")
    await house.until(lambda: house.channel.sent)
    return house.channel.sent


def echo(id_: str, text: str, chat: ChatId = CHAT) -> Inbound:
    return Inbound(
        chat=chat, ext_id=id_, sender="me@net", sender_name="Me", text=text, sent_at=START
    )


@pytest.mark.requirement("intake.message.is-bot")
@pytest.mark.requirement("backlog.content.no-bot-messages")
async def test_our_own_words_that_a_network_hands_back_are_not_stored_again(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as house:
        await house.register(trigger="@Andy")
        [(chat, body, id_)] = await answered(house, "@Andy says hello")
        before = await house.chat()

        with capture_logs() as logs:
            accepted = await house.intake.accept(echo(id_, body, chat))

        assert not accepted.is_new
        assert (accepted.message.kind, accepted.message.text) == (Kind.REPLY, "@Andy says hello")
        told = [entry["event"] for entry in logs if entry["event"].startswith("message.")]
        assert told == ["message.own"]
        assert (await house.chat()).head == before.head
        await house.idle()
        assert len(house.agent.seats) == 1


async def test_every_part_of_a_long_answer_is_known(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        house.channel.capabilities = replace(house.channel.capabilities, limit=20)
        await house.register()
        await answered(house, "first paragraph\n\nsecond paragraph")
        await house.until(lambda: len(house.channel.sent) == 2)

        for chat, body, id_ in house.channel.sent:
            assert not (await house.intake.accept(echo(id_, body, chat))).is_new


async def test_a_person_who_writes_like_the_assistant_is_kept(tmp_path: Path) -> None:
    async with open_house(tmp_path, is_serving=False) as house:
        await house.register()

        message = (await house.intake.accept(echo("x1", "Andy: I am not Andy"))).message

        assert (message.state, message.text) == (State.QUEUED, "Andy: I am not Andy")


async def test_the_same_id_in_another_chat_is_another_persons_word(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        other = ChatId("fake:other")
        await house.register()
        await house.register(other)
        [(_, _, id_)] = await answered(house, "hello")

        assert (await house.intake.accept(echo(id_, "hello", other))).is_new


async def test_in_a_group_with_an_assistant_of_its_own_its_name_speaks(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        new = NewGroup(chat=CHAT, name="Family", folder="family", assistant_name="Dr. Who")
        await house.groups.add(new)
        message = await house.hear("@Dr. Who, hello")
        (await house.agent.seated()).say("hello")
        await house.settled(message, "answered")
        await house.hear("/help")

        page = await house.story.page(CHAT, after=None, limit=10)
        assert {one.sender_name for one in page.messages if one.is_bot} == {"Dr. Who"}
        assert "Begin a message with `@Dr. Who` and Dr. Who answers" in page.messages[-1].text
