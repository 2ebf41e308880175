"""A message comes in: stored once, judged once, before anything else happens to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import StoreUnavailableError
from hallporter.domain.happening import MessageStored
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Inbound, Kind, State
from tests.fakes.clock import START
from tests.switchboard.house import CHAT, House, open_house

STRANGERS = ChatId("fake:strangers")

INBOUND = Inbound(
    chat=CHAT,
    ext_id="x1",
    sender="ada@net",
    sender_name="Ada",
    text="hello",
    sent_at=START - timedelta(minutes=3),
)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path, is_serving=False) as opened:
        await opened.register()
        yield opened


async def accept(house: House, **changes: object) -> tuple[State | None, str]:
    """State and reason of a message that differs from the usual one."""
    inbound = replace(INBOUND, **changes)  # type: ignore[arg-type]
    message = (await house.intake.accept(inbound)).message
    return message.state, message.why


# --- what is stored ------------------------------------------------------------------------------


@pytest.mark.requirement("intake.store.every-registered-message")
@pytest.mark.requirement("intake.message.id")
@pytest.mark.requirement("intake.message.chat")
@pytest.mark.requirement("intake.message.sender-and-name")
@pytest.mark.requirement("intake.message.content")
@pytest.mark.requirement("intake.message.timestamp")
async def test_a_message_of_a_registered_chat_is_stored_with_all_that_is_known(
    house: House,
) -> None:
    await house.intake.on_message(INBOUND)

    [stored] = (await house.story.page(CHAT, after=None, limit=10)).messages
    assert stored.id
    assert stored.chat == CHAT
    assert (stored.ext_id, stored.sender, stored.sender_name) == ("x1", "ada@net", "Ada")
    assert (stored.text, stored.at) == ("hello", INBOUND.sent_at)
    assert (stored.kind, stored.state, stored.seq) == (Kind.TEXT, State.QUEUED, 1)


@pytest.mark.requirement("intake.message.is-bot")
async def test_people_s_words_and_ours_are_told_apart(house: House) -> None:
    await house.hear("/help")

    page = await house.story.page(CHAT, after=None, limit=10)

    assert [message.is_bot for message in page.messages] == [False, True]


async def test_a_networks_clock_that_runs_ahead_does_not_date_a_message_into_the_future(
    house: House,
) -> None:
    ahead = replace(INBOUND, sent_at=house.clock.now() + timedelta(hours=1))

    accepted = await house.intake.accept(ahead)

    assert accepted.message.at == house.clock.now()


@pytest.mark.requirement("intake.store.registered-only")
async def test_of_an_unregistered_chat_no_words_are_kept(house: House) -> None:
    state, why = await accept(house, chat=STRANGERS, text="a secret")

    [stored] = (await house.story.page(STRANGERS, after=None, limit=10)).messages
    assert (state, why) == (State.UNREGISTERED, "the chat is not registered")
    assert stored.text == ""
    assert (await house.chat(STRANGERS)).woken_at is None


async def test_a_slash_line_in_an_unregistered_chat_does_nothing(house: House) -> None:
    state, _ = await accept(house, chat=STRANGERS, text="/help")

    assert state is State.UNREGISTERED
    assert await house.replies(STRANGERS) == []


async def test_words_said_before_a_chat_was_registered_never_reach_its_agent(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as house:
        await house.hear("before")
        await house.register()
        await house.hear("after")

        assert (await house.agent.seated()).texts() == ["after"]


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\x00"])
async def test_a_message_without_text_is_ignored(house: House, text: str) -> None:
    assert await accept(house, text=text) == (State.IGNORED, "it has no text")
    assert (await house.chat()).woken_at is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\x00b", "ab"),
        ("half \ud83d of a character", "half ? of a character"),
        ("مرحبا 你好 😀", "مرحبا 你好 😀"),
    ],
)
async def test_what_no_database_can_hold_is_left_out(house: House, text: str, kept: str) -> None:
    message = (await house.intake.accept(replace(INBOUND, text=text))).message

    assert (await house.fate(message)).message.text == kept


async def test_ids_that_no_database_can_hold_stay_different(house: House) -> None:
    names = ["x\ud800", "x\udfff", "x\x00", "x"]

    accepted = [
        await house.intake.accept(replace(INBOUND, ext_id=name, sender=f"ada{name}"))
        for name in names
    ]

    assert all(a.is_new for a in accepted)
    again = await house.intake.accept(replace(INBOUND, ext_id=names[0], sender=f"ada{names[0]}"))
    assert not again.is_new


# --- repeats -------------------------------------------------------------------------------------


@pytest.mark.requirement("backlog.cursor.seen")
async def test_a_message_handed_in_again_is_harmless(house: House) -> None:
    first = await house.intake.accept(INBOUND)
    again = await house.intake.accept(replace(INBOUND, text="other words"))

    assert first.is_new
    assert not again.is_new
    assert again.message == first.message
    assert (await house.chat()).head == 1


@pytest.mark.parametrize(
    "changes", [{"ext_id": "x2"}, {"sender": "bob@net"}, {"chat": ChatId("fake:other")}]
)
async def test_another_id_sender_or_chat_makes_another_message(
    house: House, changes: dict[str, str]
) -> None:
    await house.register(ChatId("fake:other"))
    await house.intake.accept(INBOUND)

    assert (await house.intake.accept(replace(INBOUND, **changes))).is_new  # type: ignore[arg-type]


async def test_an_id_of_the_senders_choice_is_taken_once(house: House) -> None:
    wish = MessageId("m_mine")
    first = await house.intake.accept(replace(INBOUND, preferred_id=wish))
    other = await house.intake.accept(replace(INBOUND, ext_id="x2", preferred_id=wish))

    assert first.message.id == wish
    assert other.message.id != wish


# --- what wakes ----------------------------------------------------------------------------------


@pytest.mark.requirement("trigger.required.off-forwards-all")
async def test_without_a_trigger_rule_every_message_wakes_the_chat(house: House) -> None:
    assert await accept(house) == (State.QUEUED, "no trigger needed")
    assert (await house.chat()).woken_at == house.clock.now()


@pytest.mark.requirement("trigger.required.only-matching-forwarded")
@pytest.mark.requirement("trigger.missing.accumulates")
async def test_with_a_trigger_rule_others_wait_in_the_store_until_it_comes(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path, is_serving=False) as house:
        await house.register(trigger="@Andy")

        assert await accept(house, ext_id="1") == (State.WAITING, "no trigger")
        assert (await house.chat()).woken_at is None
        assert await accept(house, ext_id="2", mentions_us=True) == (State.QUEUED, "mentioned")
        assert await accept(house, ext_id="3", text="@Andy hi") == (State.QUEUED, "trigger")
        assert (await house.chat()).woken_at is not None


@pytest.mark.requirement("trigger.required.any-message-suffices")
@pytest.mark.requirement("trigger.missing.accumulates")
@pytest.mark.requirement("backlog.content.all-since-cursor")
@pytest.mark.requirement("backlog.content.no-bot-messages")
@pytest.mark.requirement("backlog.cursor.per-chat-processed")
@pytest.mark.requirement("backlog.cursor.only-newer-forwarded")
async def test_one_trigger_brings_all_that_people_said_since_the_last_answer(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as house:
        await house.register(trigger="@Andy")
        await house.hear("one")
        served = await house.hear("@Andy two")
        (await house.agent.seated()).say("an answer")
        await house.settled(served, "answered")
        await house.hear("three")
        await house.hear("@Andy four")

        assert (await house.agent.seated(2)).texts() == ["three", "@Andy four"]


@pytest.mark.requirement("queue.running.none-starts-a-container")
async def test_a_message_to_a_quiet_chat_begins_a_turn(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.register()
        await house.hear("hello")

        assert (await house.agent.seated()).texts() == ["hello"]


@pytest.mark.requirement("queue.running.no-second-container")
@pytest.mark.requirement("queue.running.pending-runs-next")
async def test_what_cannot_go_into_the_running_agent_is_processed_right_after_it(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as house:
        await house.register()
        house.agent.takes_more = False
        await house.hear("one")
        seat = await house.agent.seated()
        await house.hear("two")
        assert len(house.agent.seats) == 1

        seat.say("to one")

        assert (await house.agent.seated(2)).texts() == ["two"]
        assert house.agent.most_live == 1


@pytest.mark.requirement("host.recovery.requeues-unprocessed")
async def test_what_was_stored_and_not_answered_is_given_to_an_agent_after_a_restart(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path, is_serving=False) as house:
        await house.register()
        await house.hear("are you there?")

    async with open_house(tmp_path) as house:
        assert (await house.agent.seated()).texts() == ["are you there?"]


@pytest.mark.requirement("prompt.text.internal-tags-stripped")
async def test_internal_tags_of_people_do_not_reach_the_agent(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.register()
        await house.hear("a <internal>b</internal> c <internal> d")

        assert (await house.agent.seated()).texts() == ["a b c  d"]


# --- chats ---------------------------------------------------------------------------------------


@pytest.mark.requirement("channel.inbound.on-chat-metadata")
@pytest.mark.requirement("channel.inbound.metadata-names-the-channel")
@pytest.mark.requirement("channel.inbound.metadata-for-every-chat")
async def test_every_chat_that_a_channel_meets_is_recorded_registered_or_not(
    house: House,
) -> None:
    for chat in (CHAT, STRANGERS):
        await house.intake.on_chat(
            ChatSeen(chat=chat, channel="fake", at=START, name="A name", is_group=True)
        )

    for chat in (CHAT, STRANGERS):
        row = await house.chat(chat)
        assert (row.channel, row.name, row.is_group) == ("fake", "A name", True)
        assert row.seen_at is not None
    assert await house.store.read(lambda tx: tx.groups.of_chat(STRANGERS)) is None


@pytest.mark.requirement("intake.group.sync-updates-chats")
async def test_a_later_look_updates_a_chat_and_forgets_nothing(house: House) -> None:
    for name in ("Old name", "New name", None):
        await house.intake.on_chat(ChatSeen(chat=STRANGERS, channel="fake", at=START, name=name))

    assert (await house.chat(STRANGERS)).name == "New name"


async def test_a_message_of_a_chat_never_seen_before_records_the_chat(house: House) -> None:
    await accept(house, chat=STRANGERS)

    row = await house.chat(STRANGERS)
    assert (row.channel, row.seen_at) == ("fake", INBOUND.sent_at)


# --- those who watch -----------------------------------------------------------------------------


async def test_whoever_watches_hears_of_a_message_once_it_is_stored(house: House) -> None:
    async with house.feed.subscribe(CHAT) as events:
        await house.intake.accept(INBOUND)
        await house.intake.accept(INBOUND)
        house.feed.close()

        assert [event async for event in events] == [MessageStored(chat=CHAT, seq=1, is_bot=False)]


@pytest.mark.requirement("channel.inbound.on-message")
async def test_a_channel_is_told_when_a_message_could_not_be_stored(house: House) -> None:
    await house.store.close()

    with pytest.raises(StoreUnavailableError):
        await house.intake.on_message(INBOUND)
