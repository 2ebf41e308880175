"""The operator hears of what needs them: once, where it is read, until it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
import structlog

from hallporter.domain.errors import AgentRefusedError, DiskError
from hallporter.domain.happening import Delivered, Lagged, MessageStored, TurnChanged
from hallporter.domain.ids import ChatId, MessageId, TurnId
from hallporter.domain.removal import Reason, Removal
from hallporter.domain.turn import Outcome
from hallporter.switchboard.groups import NewGroup
from hallporter.switchboard.notices import Notices
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.rounds import is_alarming
from tests.fakes.channel import FakeChannel
from tests.fakes.ids import counting_id
from tests.switchboard.house import CHAT, House, open_house

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.happening import Happening
    from hallporter.ports import Store

T = TypeVar("T")

MAIN = ChatId("fake:main")
ELSEWHERE = ChatId("other:ops")
LEAST = 1000  # bytes


class OtherChannel(FakeChannel):
    """A second network, for chats `other:…`."""

    name = "other"

    def owns(self, chat: ChatId) -> bool:
        return chat.startswith("other:")


@dataclass
class Desk:
    """Notices in a house, with a disk that a test fills."""

    house: House
    other: OtherChannel
    notices: Notices
    free: list[int] = field(default_factory=lambda: [LEAST * 10])

    async def keys(self) -> list[str]:
        self.house.clock.tick()
        await self.notices.look()
        return [notice.key for notice in await self.notices.open()]

    async def said(self, chat: ChatId = MAIN) -> list[str]:
        return await self.house.replies(chat)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    other = OtherChannel()
    async with asyncio.timeout(20), open_house(tmp_path) as house:

        def channel_of(chat: ChatId) -> FakeChannel | None:
            found = (one for one in (house.channel, other) if one.owns(chat))
            return next(found, None)

        outbound = Outbound(
            channel_of=channel_of,
            wake_delivery=house.delivery.wake,
            feed=house.feed,
            clock=house.clock,
            new_id=counting_id,
            speaker="Andy",
        )
        free = [LEAST * 10]
        notices = Notices(
            store=house.store,
            outbound=outbound,
            channel_of=channel_of,
            clock=house.clock,
            free_disk=lambda: free[-1],
            min_free_disk=LEAST,
        )
        house.delivery._channel_of = channel_of
        await other.connect(house.intake)
        await house.register()
        await register(house, MAIN, is_main=True)
        yield Desk(house=house, other=other, notices=notices, free=free)


async def register(house: House, chat: ChatId, *, is_main: bool) -> None:
    # A group on a network that the house itself does not serve is written by hand.
    new = NewGroup(
        chat=chat, name="X", folder=chat.replace(":", "-"), requires_trigger=False, is_main=is_main
    )
    groups = house.groups
    groups._channel_of = lambda _chat: house.channel
    await groups.add(new)


async def fail(desk: Desk, state: str = "failed") -> None:
    """A refusal takes no ladder: the chat is parked at once, the next time given up."""
    house = desk.house
    house.agent.trouble = AgentRefusedError("no such program")
    message = await house.hear("hello")
    await house.settled(message, state)
    await house.idle()


async def answer(desk: Desk) -> None:
    house = desk.house
    house.agent.trouble = None
    message = await house.hear("again")
    seat = await house.agent.seated(len(house.agent.seats) + 1)
    seat.say("here I am")
    await house.settled(message, "answered")
    await house.idle()


async def test_a_calm_house_has_no_notices(desk: Desk) -> None:
    assert await desk.keys() == []
    assert await desk.said() == []


async def test_an_agent_that_keeps_failing_is_told_once_in_mains_chat(desk: Desk) -> None:
    await fail(desk)
    for _ in range(3):
        assert await desk.keys() == [f"failing:{CHAT}"]
        desk.house.clock.advance(timedelta(minutes=1))
    told = await desk.said()
    assert len(told) == 1
    assert "The agent of 'family' keeps failing: no such program" in told[0]


async def test_an_agent_on_its_retry_ladder_is_not_yet_a_notice(desk: Desk) -> None:
    house = desk.house
    message = await house.hear("hello")
    (await house.agent.seated()).fail("a hiccup")
    await house.settled(message, "failed")
    await house.idle()
    assert await desk.keys() == []


async def test_the_next_try_neither_repeats_nor_ends_a_notice_but_an_answer_ends_it(
    desk: Desk,
) -> None:
    await fail(desk)
    assert await desk.keys() == [f"failing:{CHAT}"]
    await fail(desk, "gave_up")
    assert await desk.keys() == [f"failing:{CHAT}"]
    await answer(desk)
    assert await desk.keys() == []
    assert len(await desk.said()) == 1


async def test_the_same_trouble_again_is_told_again(desk: Desk) -> None:
    for _ in range(2):
        await fail(desk)
        await desk.keys()
        await answer(desk)
        assert await desk.keys() == []
    assert len(await desk.said()) == 2


async def test_a_turn_that_takes_the_host_down_again_and_again_is_a_notice(desk: Desk) -> None:
    house = desk.house
    await house.hear("hello")
    await house.agent.seated()

    def cut_short(tx: Tx) -> None:
        turn = tx.turns.open_in(CHAT)
        assert turn is not None
        tx.turns.save(
            replace(turn, outcome=Outcome.INTERRUPTED, ended_at=house.clock.now(), why="it ended")
        )
        tx.chats.save(replace(tx.chats.lock(CHAT), is_parked=True, woken_at=None))

    await house.store.write(cut_short)
    assert await desk.keys() == [f"failing:{CHAT}"]


async def test_a_reply_that_cannot_be_delivered_is_told_once_a_chat(desk: Desk) -> None:
    house = desk.house
    house.channel.refuses = "secret"
    for _ in range(2):
        message = await house.hear("hello")
        seat = await house.agent.seated(len(house.agent.seats) + 1)
        seat.say("a secret")
        await house.settled(message, "answered")
        await house.idle()
    await house.until(lambda: undelivered(house, 2))
    assert await desk.keys() == [f"undeliverable:{CHAT}"]
    assert await desk.keys() == [f"undeliverable:{CHAT}"]
    told = await desk.said()
    assert len(told) == 1
    assert told[0].startswith(f"2 replies in {CHAT} could not be delivered: the network refused it")
    house.clock.advance(timedelta(days=1, minutes=1))
    assert await desk.keys() == []


async def undelivered(house: House, count: int) -> bool:
    counts = await house.store.read(lambda tx: tx.outbox.counts())
    return counts.get("undeliverable", 0) == count


async def test_a_disk_that_fills_up_is_told_once_until_there_is_room(desk: Desk) -> None:
    desk.free.append(LEAST - 1)
    assert await desk.keys() == ["disk"]
    desk.free.append(LEAST + 1)  # hardly better: no reason to say it again soon
    assert await desk.keys() == ["disk"]
    desk.free.append(LEAST * 2)
    assert await desk.keys() == []
    desk.free.append(0)
    assert await desk.keys() == ["disk"]
    told = await desk.said()
    assert len(told) == 2
    assert told[0].startswith("The disk is nearly full: 999 bytes free")


class FullStore:
    """Reads as ever; what is written runs, and is then refused."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read = store.read
        self.scrub = store.scrub

    async def write(self, fn: Callable[[Tx], T]) -> T:
        def no_room(tx: Tx) -> T:
            fn(tx)
            raise DiskError("the disk is full")

        return await self._store.write(no_room)


async def test_a_full_disk_is_shown_while_it_cannot_be_stored_and_told_when_it_can(
    desk: Desk,
) -> None:
    room = desk.notices._store
    desk.notices._store = FullStore(room)
    desk.free.append(0)
    with structlog.testing.capture_logs() as logged, pytest.raises(DiskError):
        await desk.notices.look()
    (shown,) = await desk.notices.open()
    assert shown.key == "disk"
    assert shown.text.startswith("The disk is nearly full: 0 bytes free")
    assert [entry["event"] for entry in logged] == []
    assert await desk.said() == []
    desk.notices._store = room
    with structlog.testing.capture_logs() as logged:
        assert await desk.keys() == ["disk"]
    assert "notice.raised" in [entry["event"] for entry in logged]
    assert len(await desk.said()) == 1


async def test_how_much_is_free_is_shown_as_it_is_now(desk: Desk) -> None:
    desk.free.append(LEAST - 1)
    await desk.keys()
    desk.free.append(7)
    (shown,) = await desk.notices.open()
    assert "7 bytes free" in shown.text


async def test_without_a_least_the_disk_is_never_a_notice(desk: Desk) -> None:
    desk.notices._min_free_disk = None
    desk.free.append(0)
    assert await desk.keys() == []


async def test_a_migration_is_told_once_and_is_old_news_after_a_day(desk: Desk) -> None:
    await desk.notices.migrated(3, "hallporter.db.before-0002")
    assert await desk.keys() == ["migrated"]
    assert await desk.keys() == ["migrated"]
    told = await desk.said()
    assert len(told) == 1
    assert "schema 3" in told[0]
    assert "hallporter.db.before-0002" in told[0]
    desk.house.clock.advance(timedelta(days=1))
    assert await desk.keys() == []


async def test_a_sweep_is_shown_and_not_sent(desk: Desk) -> None:
    removal = Removal(
        at=desk.house.clock.now(), reason=Reason.RETENTION, counts={"messages": 1, "turns": 2}
    )
    await desk.notices.swept(removal)
    assert await desk.keys() == ["swept"]
    assert (await desk.notices.open())[0].text == ("The nightly sweep removed 1 message, 2 turns.")
    assert await desk.said() == []


async def test_while_mains_channel_is_broken_another_channels_chat_is_told(desk: Desk) -> None:
    house = desk.house
    await register(house, ELSEWHERE, is_main=False)
    house.channel.is_down = True
    desk.free.append(0)
    assert await desk.keys() == ["disk"]
    assert len(await desk.said(ELSEWHERE)) == 1
    house.channel.is_down = False
    assert await desk.keys() == ["disk"]
    assert await desk.said(MAIN) == []


async def test_with_no_healthy_channel_a_notice_waits_and_is_told_later(desk: Desk) -> None:
    desk.house.channel.is_down = True
    desk.free.append(0)
    assert await desk.keys() == ["disk"]
    assert await desk.said() == []
    desk.house.channel.is_down = False
    await desk.keys()
    await desk.keys()
    assert len(await desk.said()) == 1


async def test_a_notice_survives_a_restart_and_is_not_told_again(tmp_path: Path) -> None:
    def notices_of(house: House) -> Notices:
        outbound = Outbound(
            channel_of=lambda _chat: house.channel,
            wake_delivery=house.delivery.wake,
            feed=house.feed,
            clock=house.clock,
            new_id=counting_id,
            speaker="Andy",
        )
        return Notices(
            store=house.store,
            outbound=outbound,
            channel_of=lambda _chat: house.channel,
            clock=house.clock,
            free_disk=lambda: 0,
            min_free_disk=LEAST,
        )

    async with asyncio.timeout(20):
        async with open_house(tmp_path) as house:
            await register(house, MAIN, is_main=True)
            await notices_of(house).look()
        async with open_house(tmp_path) as house:
            await notices_of(house).look()
            assert [one.key for one in await notices_of(house).open()] == ["disk"]
            assert len(await house.replies(MAIN)) == 1


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (TurnChanged(chat=CHAT, turn=TurnId("t"), state="failed"), True),
        (TurnChanged(chat=CHAT, turn=TurnId("t"), state="answered"), False),
        (Delivered(chat=CHAT, message=MessageId("m"), state="undeliverable"), True),
        (Delivered(chat=CHAT, message=MessageId("m"), state="sent"), False),
        (MessageStored(chat=CHAT, seq=1, is_bot=False), False),
        (Lagged(), True),
    ],
)
def test_trouble_is_looked_at_at_once(event: Happening, expected: bool) -> None:
    assert is_alarming(event) is expected
