"""No message is lost, none is answered twice, and a chat's order is kept."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.ladder import RUNGS
from hallporter.domain.message import Inbound, Kind, Message, State
from hallporter.domain.task import Tick, TickState
from hallporter.domain.turn import What
from hallporter.switchboard.exchange import Exchange
from hallporter.switchboard.exchange import House as HouseFacts
from tests.fakes.agent import ScriptedSeat
from tests.fakes.clock import FakeClock
from tests.fakes.echo import EchoAgent
from tests.fakes.tasks import a_task
from tests.switchboard.house import CHAT, House, open_house

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.chat import Chat
    from hallporter.domain.outbox import Outgoing

OTHER = ChatId("fake:work")
PATIENCE = 50.0  # seconds, for thousands of messages


async def say(house: House, text: str, chat: ChatId = CHAT, *, ext_id: str = "") -> Message:
    """Without moving the clock: any number of messages have the same time."""
    inbound = Inbound(
        chat=chat,
        ext_id=ext_id or text,
        sender="Ada",
        sender_name="Ada",
        text=text,
        sent_at=house.clock.now(),
    )
    return (await house.intake.accept(inbound)).message


@contextlib.asynccontextmanager
async def echoing(path: Path, *, slots: int = 5) -> AsyncIterator[tuple[House, EchoAgent]]:
    """A house whose agent answers by itself."""
    echo = EchoAgent()
    async with open_house(path, slots=slots, is_serving=False) as house:
        exchange = Exchange(
            store=house.store,
            clerk=house.clerk,
            agents=lambda _kind: echo,
            agent_of=lambda _group: house.settings[-1],
            channel_of=lambda _chat: house.channel,
            mail=house.mail,
            clock=house.clock,
            house=HouseFacts(assistant_name="Andy", timezone="UTC"),
        )
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(house.engine.serve(exchange.run))
            yield house, echo
            serving.cancel()


async def nothing_open(house: House) -> None:
    async with asyncio.timeout(PATIENCE), house.feed.subscribe(None) as events:
        while await house.store.read(lambda tx: tx.messages.counts()):
            await anext(events)


async def transcript(house: House, chat: ChatId) -> Sequence[Message]:
    return await house.store.read(lambda tx: tx.messages.page(chat, 0, 10_000))


async def assert_each_answered_once_in_order(house: House, chat: ChatId) -> None:
    messages = await transcript(house, chat)
    asked = [message.id for message in messages if message.kind is Kind.TEXT]
    answers = [message.text.split() for message in messages if message.kind is Kind.REPLY]
    assert [MessageId(name) for answer in answers for name in answer] == asked
    row = await house.chat(chat)
    assert row.cursor == max(m.seq for m in messages if m.kind is Kind.TEXT)
    assert row.woken_at is None
    assert await house.store.read(lambda tx: tx.turns.open_in(chat)) is None


# --- the same instant ----------------------------------------------------------------------------


async def test_two_messages_of_the_same_instant_in_one_chat_are_both_answered(
    tmp_path: Path,
) -> None:
    async with echoing(tmp_path) as (house, _):
        await house.register()
        first, second = await asyncio.gather(say(house, "one"), say(house, "two"))

        await nothing_open(house)

        assert first.at == second.at
        await assert_each_answered_once_in_order(house, CHAT)


async def test_a_message_of_the_same_instant_as_the_answered_one_is_answered_too(
    tmp_path: Path,
) -> None:
    async with echoing(tmp_path) as (house, _):
        await house.register()
        for number in range(5):
            await say(house, f"message {number}")
            await nothing_open(house)

        await assert_each_answered_once_in_order(house, CHAT)


async def test_two_messages_of_the_same_instant_in_two_chats_are_both_answered(
    tmp_path: Path,
) -> None:
    async with echoing(tmp_path, slots=1) as (house, _):
        for chat in (CHAT, OTHER):
            await house.register(chat)
        await asyncio.gather(say(house, "one"), say(house, "two", OTHER))

        await nothing_open(house)

        for chat in (CHAT, OTHER):
            await assert_each_answered_once_in_order(house, chat)


# --- many writers --------------------------------------------------------------------------------


async def test_2000_messages_over_200_chats_are_each_answered_once_and_in_order(
    tmp_path: Path,
) -> None:
    chats = [ChatId(f"fake:chat-{number}") for number in range(200)]
    async with echoing(tmp_path) as (house, echo):
        for chat in chats:
            await house.register(chat)

        async def sender(name: int) -> None:
            for number in range(100):
                chat = chats[(name * 7 + number * 13) % len(chats)]
                await say(house, f"{name}-{number}", chat)

        async with asyncio.TaskGroup() as tasks:
            for name in range(20):
                tasks.create_task(sender(name))
        await nothing_open(house)
        await house.idle()

        assert echo.overlaps == 0
        for chat in chats:
            await assert_each_answered_once_in_order(house, chat)


@pytest.mark.rule("R1")
async def test_writers_that_race_the_claims_of_one_chat_lose_no_wake_up(tmp_path: Path) -> None:
    """Traps: a cursor that passes a message still in flight; a wake-up dropped as a repeat."""
    async with echoing(tmp_path) as (house, echo):
        await house.register()

        async def sender(name: int) -> None:
            for number in range(20):
                await say(house, f"{name}-{number}")
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as tasks:
            for name in range(20):
                tasks.create_task(sender(name))
        await nothing_open(house)
        await house.idle()

        assert echo.overlaps == 0
        await assert_each_answered_once_in_order(house, CHAT)


async def test_the_same_message_handed_in_by_many_at_once_is_stored_once(tmp_path: Path) -> None:
    async with echoing(tmp_path) as (house, _):
        await house.register()
        stored = await asyncio.gather(*(say(house, "hello", ext_id="x1") for _ in range(30)))

        await nothing_open(house)

        assert len({message.id for message in stored}) == 1
        await assert_each_answered_once_in_order(house, CHAT)


# --- parked chats --------------------------------------------------------------------------------


@pytest.mark.rule("R14")
async def test_a_follow_up_into_the_last_attempt_does_not_wake_the_parked_chat_again(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as house:
        await house.register()
        await house.hear("one")
        for rung in (*RUNGS, None):
            seat = await house.agent.seated(len(house.agent.seats) or 1)
            if rung is None:
                await house.hear("two")
                await seat.wait_fed()
            seat.fail("the model is away")
            await house.agent.over(seat)
            await house.idle()
            if rung is not None:
                house.clock.advance(rung)
                await house.agent.seated(len(house.agent.seats) + 1)

        await flush(house)
        await house.idle()

        assert (await house.chat()).is_parked
        assert len(house.agent.seats) == len(RUNGS) + 1
        await house.hear("three")
        again = await house.agent.seated(len(RUNGS) + 2)
        assert again.texts() == ["one", "two", "three"]


# --- any order of events -------------------------------------------------------------------------

FINAL = {
    State.ANSWERED,
    State.SILENT,
    State.STOPPED,
    State.COMMAND,
    State.OMITTED,
    State.GAVE_UP,
    State.IGNORED,
}


ANSWERS = {"answered", "the agent said nothing"}
TICK_ENDS = {TickState.RAN, TickState.LATE, TickState.FAILED, TickState.SKIPPED}


@dataclass(frozen=True)
class Hear:
    chat: ChatId
    text: str


@dataclass(frozen=True)
class FallDue:
    """A tick of the chat's task."""

    chat: ChatId


@dataclass(frozen=True)
class Say:
    """A success block of one of the live agents; `back` messages short of all it was given."""

    who: int
    text: str | None
    back: int
    idle: bool


@dataclass(frozen=True)
class Fail:
    who: int


@dataclass(frozen=True)
class Leave:
    who: int
    back: int


@dataclass(frozen=True)
class Wait:
    seconds: int


@dataclass(frozen=True)
class TakeMore:
    """Whether agents from now on can be given follow-ups."""

    yes: bool


@dataclass(frozen=True)
class Restart:
    """The host ends as if killed: nothing is tidied up."""


Event = Hear | FallDue | Say | Fail | Leave | Wait | TakeMore | Restart

CHATS = st.sampled_from([CHAT, OTHER])
WHO = st.integers(0, 3)
EVENTS = st.one_of(
    st.builds(Hear, CHATS, st.sampled_from(["@Andy hello", "just talking"])),
    st.builds(Hear, CHATS, st.sampled_from(["@Andy again", "/stop", "/new", "/status"])),
    st.builds(FallDue, CHATS),
    st.builds(Say, WHO, st.sampled_from(["an answer", None]), st.integers(0, 2), st.booleans()),
    st.builds(Say, WHO, st.just("all of it"), st.just(0), st.just(True)),
    st.builds(Fail, WHO),
    st.builds(Leave, WHO, st.integers(0, 2)),
    st.builds(Wait, st.sampled_from([1, 5, 80, 3600])),
    st.builds(TakeMore, st.booleans()),
    st.builds(Restart),
)


@dataclass
class Told:
    """What the network has shown, over all restarts; a repeat under the same id is shown once."""

    shown: dict[str, tuple[ChatId, str]] = field(default_factory=dict)

    def gather(self, house: House) -> None:
        for chat, body, message_id in house.channel.sent:
            self.shown.setdefault(message_id, (chat, body))

    def in_chat(self, chat: ChatId) -> list[str]:
        return [body for where, body in self.shown.values() if where == chat]


async def flush(house: House) -> None:
    """Let everything that was set going come to rest: writes, signals, sends."""
    for _ in range(12):
        await house.store.write(lambda tx: tx.chats.woken())
        await asyncio.sleep(0)


def live(house: House) -> list[ScriptedSeat]:
    return [seat for seat in house.agent.seats if not seat.is_over]


async def carry_out(house: House, event: Event) -> None:
    seats = live(house)
    match event:
        case Hear(chat, text):
            await house.hear(text, chat)
        case FallDue(chat):
            await house.store.write(lambda tx: fall_due(house, tx, chat))
        case Wait(seconds):
            house.clock.advance(timedelta(seconds=seconds))
        case TakeMore(yes):
            house.agent.takes_more = yes
        case Say(who, text, back, idle) if seats:
            seat = seats[who % len(seats)]
            seat.say(text, through=max(0, seat.given - back), idle=idle)
        case Fail(who) if seats:
            seats[who % len(seats)].fail("overloaded")
        case Leave(who, back) if seats:
            seat = seats[who % len(seats)]
            seat.leave(1, taken=max(0, seat.given - back))
        case _:
            pass
    await flush(house)


def fall_due(house: House, tx: Tx, chat: ChatId) -> None:
    house.clock.tick()
    task = next(task for task in tx.tasks.all() if task.chat == chat)
    due = house.clock.now()
    assert tx.tasks.add_tick(Tick(task=task.id, due=due, chat=chat, state=TickState.DUE))
    house.engine.ring(tx, chat)


async def bring_to_an_end(house: House) -> None:
    """Every agent that still works answers, every pause goes by."""
    for _ in range(60):
        await flush(house)
        for seat in live(house):
            seat.say("the end")
        await flush(house)
        house.clock.advance(RUNGS[-1])
        await flush(house)
        is_waiting = await house.store.read(
            lambda tx: bool(tx.chats.woken() or tx.outbox.chats_with_pending())
        )
        if not live(house) and not is_waiting:
            return
    pytest.fail("it never comes to rest")


async def assert_nothing_is_lost_or_doubled(house: House, told: Told, heard: set[str]) -> None:
    for chat in (CHAT, OTHER):
        row, messages, outgoing = await house.store.read(
            lambda tx, chat=chat: _records(tx, chat)  # type: ignore[misc]
        )
        assert row.cursor <= row.head
        people = [m for m in messages if not m.is_bot]
        heard -= {m.id for m in people}
        for message in people:
            fate = await house.fate(message)
            assert fate.steps
            pending = State.FAILED if row.is_parked else State.WAITING
            assert message.state in FINAL | {State.WAITING, pending}, (message, row)
            if message.state is State.WAITING:
                assert not message.wakes
            answers = [step for step in fate.steps if step.what in ANSWERS]
            is_answered = message.state in {State.ANSWERED, State.SILENT}
            assert len(answers) == is_answered, "answered in two turns, or said so wrongly"
            assert bool(fate.replies) == (message.state is State.ANSWERED)
        ours = [m for m in messages if m.is_bot]
        assert told.in_chat(chat) == [m.text for m in ours]
        assert [str(row.state) for row in outgoing] == ["sent"] * len(ours)
    assert not heard, "a message has no row"


def assert_each_tick_is_answered_at_most_once(tx: Tx) -> None:
    assert tx.chats.unheard() == []
    for task in tx.tasks.all():
        for tick in tx.tasks.ticks(task.id, 1000):
            turns = tx.turns.of_tick(task.chat, tick)
            answered = [
                turn
                for turn in turns
                if any(note.what is What.BLOCK for note in tx.turns.notes([turn.id]))
            ]
            has_run = tick.state in {TickState.RAN, TickState.LATE}
            assert tick.state in TICK_ENDS, tick
            assert len(answered) == has_run, (tick, turns)
            assert len(turns) == tick.attempts
            assert (tick.ended_at is None) == (tick.state is TickState.SKIPPED)


def _records(tx: Tx, chat: ChatId) -> tuple[Chat, Sequence[Message], Sequence[Outgoing]]:
    row = tx.chats.get(chat)
    assert row is not None
    messages = tx.messages.page(chat, 0, 10_000)
    ours = [m.id for m in messages if m.is_bot]
    return row, messages, tx.outbox.of_messages(ours)


async def live_through(folder: Path, events: Sequence[Event]) -> None:
    clock = FakeClock()
    told = Told()
    heard: set[str] = set()
    rest = list(events)
    is_first = True
    while True:
        async with open_house(folder, clock=clock, slots=2) as house:
            if is_first:
                await house.register(CHAT)
                await house.register(OTHER, trigger="@Andy")
                for task in (a_task(CHAT), a_task(OTHER)):
                    await house.store.write(lambda tx, task=task: tx.tasks.add(task))  # type: ignore[misc]
                is_first = False
            await flush(house)
            while rest and not isinstance(rest[0], Restart):
                await carry_out(house, rest.pop(0))
                for chat in (CHAT, OTHER):
                    heard |= {m.id for m in await transcript(house, chat) if not m.is_bot}
            if not rest:
                await bring_to_an_end(house)
                told.gather(house)
                await assert_nothing_is_lost_or_doubled(house, told, heard)
                await house.store.read(assert_each_tick_is_answered_at_most_once)
                return
            told.gather(house)
            rest.pop(0)


@pytest.mark.rule("R1")
@pytest.mark.rule("R10")
@pytest.mark.rule("R14")
@given(st.lists(EVENTS, max_size=30))
@settings(max_examples=60)
def test_whatever_happens_each_message_has_one_fate_and_one_answer(events: list[Event]) -> None:
    """And each tick one row, and at most one answer."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live_through(Path(folder), events))
