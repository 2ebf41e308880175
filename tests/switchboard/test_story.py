"""What was said in a chat, and what became of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hallporter.domain.backlog import MAX_MESSAGES
from hallporter.domain.errors import InvalidRequestError, NotFoundError
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.ladder import RUNGS
from tests.switchboard.house import CHAT, House, open_house

OTHER = ChatId("fake:work")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        await opened.register()
        yield opened


async def answered(house: House, text: str, *, turn: int = 1) -> MessageId:
    message = await house.hear(text)
    (await house.agent.seated(turn)).say(f"to {text}")
    await house.settled(message, "answered")
    await house.idle()
    return message.id


# --- pages ---------------------------------------------------------------------------------------


async def test_a_chat_is_read_page_by_page_from_the_oldest(house: House) -> None:
    for turn in (1, 2, 3):
        await answered(house, f"message {turn}", turn=turn)
    texts: list[str] = []
    after: str | None = None
    sizes = []
    while True:
        page = await house.story.page(CHAT, after=after, limit=4)
        texts += [message.text for message in page.messages]
        sizes.append(len(page.messages))
        if page.next is None:
            break
        after = page.next

    assert sizes == [4, 2]
    assert texts == [f"{who}message {n}" for n in (1, 2, 3) for who in ("", "to ")]


async def test_a_page_that_ends_exactly_at_the_end_has_no_next(house: House) -> None:
    await answered(house, "hello")

    page = await house.story.page(CHAT, after=None, limit=2)

    assert len(page.messages) == 2
    assert page.next is None


async def test_an_empty_chat_is_an_empty_page(house: House) -> None:
    page = await house.story.page(OTHER, after=None, limit=10)

    assert (page.messages, page.next) == ([], None)


async def test_after_must_be_a_message_of_this_chat(house: House) -> None:
    await house.register(OTHER)
    elsewhere = await house.hear("elsewhere", OTHER)

    for name in ("m_none", elsewhere.id):
        with pytest.raises(InvalidRequestError, match="in this chat"):
            await house.story.page(CHAT, after=name, limit=10)


async def test_a_stream_reads_on_from_a_number_and_knows_where_a_message_stands(
    house: House,
) -> None:
    first = await answered(house, "one")
    place = await house.story.place_of(CHAT, first)

    since = await house.story.since(CHAT, place, 10)

    assert [message.text for message in since] == ["to one"]
    assert await house.story.standing(CHAT) == (2, None)
    assert await house.story.standing(OTHER) == (0, None)


async def test_the_running_turn_is_part_of_where_a_chat_stands(house: House) -> None:
    await house.hear("one")
    seat = await house.agent.seated()

    _, turn = await house.story.standing(CHAT)

    assert turn is not None
    assert turn.id == seat.brief.turn


async def test_a_chat_is_open_once_it_is_registered(house: House) -> None:
    assert await house.story.is_open(CHAT)
    assert not await house.story.is_open(OTHER)


# --- fates ---------------------------------------------------------------------------------------


async def test_a_fate_is_found_by_our_id_and_by_the_networks(house: House) -> None:
    message = await house.hear("hello", ext_id="net-1")

    [by_ours] = await house.story.fates(message.id)
    [by_theirs] = await house.story.fates("net-1")

    assert by_ours.message.id == by_theirs.message.id == message.id


async def test_all_messages_with_a_networks_id_are_told(house: House) -> None:
    for sender in ("Ada", "Bob"):
        await house.hear("hello", sender=sender, ext_id="net-1")

    fates = await house.story.fates("net-1")

    assert [fate.message.sender for fate in fates] == ["Ada", "Bob"]


async def test_a_message_that_nobody_knows_is_not_found(house: House) -> None:
    with pytest.raises(NotFoundError, match="neither an id of ours nor one of a network's"):
        await house.story.fates("nothing")


async def test_a_fate_tells_the_way_of_a_message_over_a_failure_to_its_reply(
    house: House,
) -> None:
    message = await house.hear("hello")
    seat = await house.agent.seated()
    seat.fail("overloaded")
    await house.agent.over(seat)
    await house.idle()
    house.clock.advance(RUNGS[0])
    (await house.agent.seated(2)).say("hi")
    await house.settled(message, "answered")
    await house.until(lambda: house.channel.sent)
    [reply] = (await house.fate(message)).replies

    async def delivered() -> bool:
        return (await house.story.fates(reply))[0].state == "sent"

    await house.until(delivered)
    whats = [step.what.split(" in turn")[0] for step in (await house.fate(message)).steps]

    assert whats == [
        "stored",
        "woke the chat",
        "given to the agent",
        "the turn failed",
        "given to the agent",
        "answered",
        "the reply was delivered",
    ]


async def test_a_reply_that_cannot_be_delivered_says_so_on_both_sides(house: House) -> None:
    house.channel.refuses = "hi"
    message = await house.hear("hello")
    (await house.agent.seated()).say("hi")
    await house.settled(message, "answered")
    [reply] = (await house.fate(message)).replies

    async def undeliverable() -> bool:
        return (await house.story.fates(reply))[0].state == "undeliverable"

    await house.until(undeliverable)

    assert (await house.fate(message)).steps[-1].what == "the reply could not be delivered"


@pytest.mark.requirement("container.output.each-block-is-sent")
async def test_each_block_of_an_agent_reaches_the_chat_as_a_message_in_order(house: House) -> None:
    await house.hear("hello")
    seat = await house.agent.seated()
    for text in ("one", "two", "three"):
        seat.say(text, idle=text == "three")

    await house.until(lambda: len(house.channel.sent) == 3)

    assert [body for _, body, _ in house.channel.sent] == ["one", "two", "three"]


@pytest.mark.rule("R16")
async def test_what_was_left_out_has_no_part_in_the_answer(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.register(trigger="@Andy")
        oldest = await house.hear("the very first")
        for number in range(MAX_MESSAGES - 1):
            await house.hear(f"talk {number}")
        last = await house.hear("@Andy what was said?")
        (await house.agent.seated()).say("a lot")
        await house.settled(last, "answered")

        fate = await house.fate(oldest)

        assert fate.state == "omitted"
        assert fate.replies == ()
        assert "answered" not in [step.what for step in fate.steps]
