"""After trouble nothing is left behind: a store that was away, a group that is gone, a burst."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import pytest

from hallporter.domain.backlog import MAX_BYTES
from hallporter.domain.brief import Block
from hallporter.domain.errors import StoreUnavailableError
from hallporter.domain.ids import MessageId
from hallporter.domain.outbox import Outgoing, Part
from hallporter.domain.turn import Turn
from hallporter.ports import Store
from hallporter.switchboard.delivery import Delivery
from hallporter.switchboard.exchange import Exchange
from hallporter.switchboard.exchange import House as HouseFacts
from hallporter.switchboard.progress import Progress, Written
from tests.fakes.clock import START
from tests.switchboard.house import CHAT, PATIENCE, House, open_house

if TYPE_CHECKING:
    from hallporter.books import Tx

T = TypeVar("T")

LONG = timedelta(minutes=2)  # more than any pause before the next try


class MovingStore:
    """`ports.Store` before another one; it refuses what `away` names."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away: frozenset[Literal["read", "write"]] = frozenset()
        self.refused = asyncio.Event()

    async def write(self, fn: Callable[[Tx], T]) -> T:
        self._refuse("write")
        return await self._store.write(fn)

    async def read(self, fn: Callable[[Tx], T]) -> T:
        self._refuse("read")
        return await self._store.read(fn)

    async def scrub(self) -> bool:
        return await self._store.scrub()

    async def was_missed(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.refused.wait()

    def _refuse(self, what: Literal["read", "write"]) -> None:
        if what in self.away:
            self.refused.set()
            raise StoreUnavailableError("the store is away")


@pytest.fixture
async def quiet_house(tmp_path: Path) -> AsyncIterator[House]:
    """Turns and sends are the test's."""
    async with open_house(tmp_path, is_serving=False) as opened:
        yield opened


@contextlib.asynccontextmanager
async def turns_served(house: House, store: Store) -> AsyncIterator[None]:
    exchange = Exchange(
        store=store,
        clerk=house.clerk,
        agents=lambda _kind: house.agent,
        agent_of=lambda _group: house.settings[-1],
        channel_of=lambda _chat: house.channel,
        mail=house.mail,
        clock=house.clock,
        house=HouseFacts(assistant_name="Andy", timezone="UTC"),
    )
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(house.engine.serve(exchange.run))
        yield
        serving.cancel()


async def open_turn(house: House) -> Turn:
    opened = await house.store.write(lambda tx: house.clerk.open(tx, CHAT))
    assert opened is not None
    return opened.turn


async def turn_now(house: House, turn: Turn) -> Turn:
    now = await house.store.read(lambda tx: tx.turns.get(turn.id))
    assert now is not None
    return now


async def answer(
    house: House,
    turn: Turn,
    text: str | None,
    *,
    through: int,
    progress: Progress,
    idle: bool = True,
) -> Written:
    block = Block(is_error=False, text=text, session_id=None, error="", through=through, idle=idle)
    return await house.store.write(lambda tx: house.clerk.block(tx, turn, block, progress))


async def put(house: House, text: str) -> None:
    """Into the outbox, without a word to whoever sends."""
    row = Outgoing(
        number=0,
        key=text,
        chat=CHAT,
        message=MessageId(text),
        at=START,
        parts=(Part(body=text, message_id=text),),
    )
    await house.store.write(lambda tx: tx.outbox.put(row))


async def nothing_to_send(house: House) -> None:
    async def is_empty() -> bool:
        return not await house.store.read(lambda tx: tx.outbox.chats_with_pending())

    await house.until(is_empty)


# --- a store that was away ------------------------------------------------------------------------


@pytest.mark.rule("R14")
async def test_a_turn_whose_end_could_not_be_written_is_interrupted_and_its_message_answered_once(
    quiet_house: House,
) -> None:
    house, store = quiet_house, MovingStore(quiet_house.store)
    await house.register()
    async with turns_served(house, store):
        message = await house.hear("hello")
        seat = await house.agent.seated()
        cut_short = await house.store.read(lambda tx: tx.turns.open_in(CHAT))
        assert cut_short is not None
        store.away = frozenset({"write"})
        seat.say("lost on the way")
        await house.agent.over(seat)
        await house.idle()
        assert (await turn_now(house, cut_short)).outcome is None

        store.away = frozenset()
        house.clock.advance(LONG)
        again = await house.agent.seated(2)

        assert (await turn_now(house, cut_short)).outcome == "interrupted"
        assert again.texts() == ["hello"]
        again.say("hello to you")
        await house.settled(message, "answered")
        await house.idle()
    assert await house.replies() == ["hello to you"]
    assert await house.store.read(lambda tx: tx.turns.open_in(CHAT)) is None
    assert len(house.agent.seats) == 2


@pytest.mark.parametrize("away", ["read", "write"])
async def test_what_could_not_be_sent_while_the_store_was_away_is_sent_by_itself(
    quiet_house: House, away: Literal["read", "write"]
) -> None:
    house, store = quiet_house, MovingStore(quiet_house.store)
    await house.register()
    delivery = Delivery(
        store=store, channel_of=lambda _chat: house.channel, feed=house.feed, clock=house.clock
    )
    await put(house, "old news")
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(delivery.serve())
        await nothing_to_send(house)
        store.away = frozenset({away})
        await put(house, "good news")
        delivery.wake(CHAT)
        await store.was_missed()

        store.away = frozenset()
        house.clock.advance(LONG)

        await nothing_to_send(house)
        serving.cancel()
    assert [body for _, body, _ in house.channel.sent] == ["old news", "good news"]


# --- a group that is gone -------------------------------------------------------------------------


async def test_what_waits_in_a_chat_whose_group_is_gone_is_ignored(quiet_house: House) -> None:
    house = quiet_house
    group = await house.register()
    message = await house.hear("is anyone there?")
    assert await house.state(message) == "queued"
    # The bare row: whoever removes a group in use may settle what waits before the clerk can.
    await house.store.write(lambda tx: tx.groups.remove(group.folder))

    assert await house.store.write(lambda tx: house.clerk.open(tx, CHAT)) is None

    assert await house.state(message) == "ignored"
    assert (await house.chat()).woken_at is None


# --- follow-ups and blocks ------------------------------------------------------------------------


@pytest.mark.rule("R16")
async def test_of_a_burst_of_follow_ups_the_oldest_are_omitted_and_stay_so(
    quiet_house: House,
) -> None:
    house = quiet_house
    await house.register()
    await house.hear("hello")
    turn = await open_turn(house)
    oldest = await house.hear("a" * MAX_BYTES)
    newest = await house.hear("b")

    batch = await house.store.write(lambda tx: house.clerk.pipe(tx, turn))

    assert batch is not None
    assert ([line.text for line in batch.lines], batch.omitted) == (["b"], 1)
    assert (await house.state(oldest), await house.state(newest)) == ("omitted", "running")
    await answer(house, turn, "to all of it", through=batch.through, progress=Progress())
    assert (await house.state(oldest), await house.state(newest)) == ("omitted", "answered")


@pytest.mark.rule("R6")
async def test_follow_ups_none_of_which_asks_for_an_answer_are_not_piped(
    quiet_house: House,
) -> None:
    house = quiet_house
    await house.register(trigger="@Andy")
    await house.hear("@Andy hello")
    turn = await open_turn(house)
    aside = await house.hear("just talking")

    assert await house.store.write(lambda tx: house.clerk.pipe(tx, turn)) is None

    assert await house.state(aside) == "waiting"
    assert (await turn_now(house, turn)).piped == turn.piped < aside.seq


@pytest.mark.rule("R5")
async def test_a_message_passed_over_in_silence_is_answered_when_words_follow_in_the_same_turn(
    quiet_house: House,
) -> None:
    house = quiet_house
    await house.register()
    message = await house.hear("hello")
    turn = await open_turn(house)
    through = message.seq
    silence = await answer(house, turn, None, through=through, progress=Progress(), idle=False)
    assert await house.state(message) == "silent"

    words = await answer(
        house, turn, "on second thought: hello", through=through, progress=silence.progress
    )

    assert words.is_end
    assert len((await house.fate(message)).replies) == 1
    assert await house.state(message) == "answered"
