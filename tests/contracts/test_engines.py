"""What every engine promises: one turn per chat, oldest first, nothing forgotten."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.chat import Chat, ChatSeen
from hallporter.domain.ids import SANDBOXES, ChatId, MessageId, Pool
from hallporter.domain.message import Kind, Message, State
from hallporter.domain.task import Tick, TickState
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.ports import Engine, Signals, Store
from hallporter.stores.sqlite import open_store
from tests.fakes.clock import START, FakeClock
from tests.fakes.tasks import a_task

if TYPE_CHECKING:
    from hallporter.books import Tx

REMOTE = Pool("remote")
PATIENCE = 5.0  # seconds
SIZES = {SANDBOXES: 2, REMOTE: 2}


@dataclass(kw_only=True)
class Turn:
    """One run that the test lets end."""

    chat: ChatId
    signals: Signals
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False
    was_cut: bool = False
    crash: Exception | None = None

    def end(self, crash: Exception | None = None) -> None:
        self.crash = crash
        self.may_end.set()


class Hall:
    """An engine at work, with turns in the test's hands."""

    def __init__(self, engine: Engine, store: Store, clock: FakeClock) -> None:
        self.engine = engine
        self.store = store
        self.clock = clock
        self.turns: list[Turn] = []
        self._changed = asyncio.Event()

    async def run(self, chat: ChatId, signals: Signals) -> None:
        """A turn as the switchboard would claim it: who is claimed no longer waits."""
        await self.store.write(partial(claim, chat=chat))
        turn = Turn(chat=chat, signals=signals)
        self.turns.append(turn)
        self._changed.set()
        try:
            await turn.may_end.wait()
            if turn.crash is not None:
                raise turn.crash
        except asyncio.CancelledError:
            turn.was_cut = True
            raise
        finally:
            turn.is_over = True
            self._changed.set()

    async def wake(
        self, name: str, *, pool: Pool = SANDBOXES, not_before: datetime | None = None
    ) -> None:
        self.clock.tick()
        await self.store.write(partial(self._wake, name=name, pool=pool, not_before=not_before))

    async def ring(self, name: str) -> None:
        self.clock.tick()
        await self.store.write(lambda tx: self.engine.ring(tx, _known(tx, name, SANDBOXES)))

    def _wake(self, tx: Tx, name: str, pool: Pool, not_before: datetime | None) -> None:
        self.engine.wake(tx, _known(tx, name, pool), not_before)

    async def row(self, name: str) -> Chat:
        row = await self.store.read(lambda tx: tx.chats.get(ChatId(f"fake:{name}")))
        assert row is not None
        return row

    async def begun(self, count: int) -> Turn:
        """The count-th turn, once it runs."""
        await self.until(lambda: len(self.turns) >= count)
        return self.turns[count - 1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def quiet(self) -> None:
        """Everything that could happen now has happened."""
        for _ in range(20):
            await self.store.read(lambda tx: tx.chats.woken())

    def names(self) -> list[str]:
        return [turn.chat.removeprefix("fake:") for turn in self.turns]


def claim(tx: Tx, chat: ChatId) -> None:
    """A tick goes before the backlog, which keeps its place and its backoff."""
    row = tx.chats.lock(chat)
    if row.due_at is not None:
        tx.chats.save(replace(row, due_at=None))
    else:
        tx.chats.save(replace(row, woken_at=None, not_before=None))


def _known(tx: Tx, name: str, pool: Pool) -> ChatId:
    chat = ChatId(f"fake:{name}")
    if tx.chats.get(chat) is None:
        tx.chats.seen(ChatSeen(chat=chat, channel="fake", at=START))
        tx.chats.save(replace(tx.chats.lock(chat), pool=pool))
    return chat


@contextlib.asynccontextmanager
async def embedded(folder: Path, clock: FakeClock) -> AsyncIterator[tuple[Engine, Store]]:
    async with open_store(folder / "hallporter.db", clock) as store:
        yield EmbeddedEngine(store=store, clock=clock, pool_size=SIZES.__getitem__), store


Opener = Callable[[Path, FakeClock], AbstractAsyncContextManager[tuple[Engine, Store]]]

# One line per engine; each must keep every promise below.
ADAPTERS: dict[str, Opener] = {"embedded": embedded}


@pytest.fixture(params=ADAPTERS)
def opener(request: pytest.FixtureRequest) -> Opener:
    return ADAPTERS[request.param]


@contextlib.asynccontextmanager
async def serving(opener: Opener, folder: Path, clock: FakeClock) -> AsyncIterator[Hall]:
    async with opener(folder, clock) as (engine, store), asyncio.TaskGroup() as tasks:
        hall = Hall(engine, store, clock)
        task = tasks.create_task(engine.serve(hall.run))
        yield hall
        task.cancel()


@pytest.fixture
async def hall(opener: Opener, tmp_path: Path) -> AsyncIterator[Hall]:
    async with serving(opener, tmp_path, FakeClock()) as opened:
        yield opened


# --- who is next ---------------------------------------------------------------------------------


async def test_a_chat_has_one_turn_at_a_time(hall: Hall) -> None:
    await hall.wake("a")
    first = await hall.begun(1)
    for _ in range(5):
        await hall.wake("a")
    await hall.quiet()
    assert len(hall.turns) == 1

    first.end()

    second = await hall.begun(2)
    second.end()
    await hall.quiet()
    assert hall.names() == ["a", "a"]


@pytest.mark.requirement("queue.concurrency.starts-when-slot-frees")
async def test_the_oldest_wait_goes_first_as_soon_as_there_is_room(hall: Hall) -> None:
    for name in "abcdef":
        await hall.wake(name)
    await hall.wake("c")  # is in the line already and keeps its place
    for number in range(1, 7):
        turn = await hall.begun(number)
        assert hall.engine.health().running <= SIZES[SANDBOXES]
        turn.end()

    assert hall.names() == list("abcdef")


async def test_a_full_pool_does_not_hold_up_another(hall: Hall) -> None:
    for name in "abcd":
        await hall.wake(name)
    await hall.begun(2)

    await hall.wake("far", pool=REMOTE)

    assert (await hall.begun(3)).chat == "fake:far"
    await hall.quiet()
    assert hall.names() == ["a", "b", "far"]


async def test_a_turn_is_not_begun_before_its_time_and_holds_nobody_up(hall: Hall) -> None:
    await hall.wake("later", not_before=hall.clock.now() + timedelta(seconds=5))
    await hall.wake("now")
    (await hall.begun(1)).end()
    await hall.quiet()
    hall.clock.advance(timedelta(seconds=4))
    await hall.quiet()
    assert hall.names() == ["now"]

    hall.clock.advance(timedelta(seconds=1))

    assert (await hall.begun(2)).chat == "fake:later"


async def test_a_wake_without_a_time_ends_the_pause(hall: Hall) -> None:
    await hall.wake("a", not_before=hall.clock.now() + timedelta(hours=1))
    await hall.quiet()

    await hall.wake("a")

    await hall.begun(1)


# --- wake-ups ------------------------------------------------------------------------------------


async def test_a_wake_during_a_turn_signals_more_and_is_not_lost(hall: Hall) -> None:
    await hall.wake("a")
    first = await hall.begun(1)

    await hall.wake("a")

    async with asyncio.timeout(PATIENCE):
        assert await first.signals.wait() == {"more"}
    first.end()
    await hall.begun(2)


async def test_a_wake_whose_transaction_fails_wakes_nobody(hall: Hall) -> None:
    await hall.wake("a")
    (await hall.begun(1)).end()
    await hall.quiet()

    def fn(tx: Tx) -> None:
        hall.engine.wake(tx, ChatId("fake:a"))
        raise LookupError

    with pytest.raises(LookupError):
        await hall.store.write(fn)

    await hall.quiet()
    assert len(hall.turns) == 1


async def test_signals_reach_the_turn_that_runs_and_nobody_else(hall: Hall) -> None:
    await hall.wake("a")
    turn = await hall.begun(1)

    hall.engine.signal(ChatId("fake:nobody"), "stop")
    hall.engine.signal(turn.chat, "stop")
    hall.engine.signal(turn.chat, "stop")
    hall.engine.signal(turn.chat, "more")

    async with asyncio.timeout(PATIENCE):
        assert await turn.signals.wait() == {"stop", "more"}


async def test_a_signal_for_a_turn_that_is_over_does_not_reach_the_next(hall: Hall) -> None:
    await hall.wake("a")
    (await hall.begun(1)).end()
    await hall.quiet()
    hall.engine.signal(ChatId("fake:a"), "stop")
    await hall.wake("a")
    turn = await hall.begun(2)
    await hall.wake("a")

    async with asyncio.timeout(PATIENCE):
        assert await turn.signals.wait() == {"more"}


@pytest.mark.requirement("host.recovery.requeues-unprocessed")
async def test_what_was_woken_before_the_start_is_found_oldest_first(
    opener: Opener, tmp_path: Path
) -> None:
    clock = FakeClock()
    async with opener(tmp_path, clock) as (engine, store):
        before = Hall(engine, store, clock)
        for name in "dcba":
            await before.wake(name)

    async with serving(opener, tmp_path, clock) as hall:
        for number in range(1, 5):
            (await hall.begun(number)).end()
        assert hall.names() == list("dcba")


async def test_a_queued_message_without_a_wake_up_is_found_by_the_sweep(
    opener: Opener, tmp_path: Path
) -> None:
    chat = ChatId("fake:lost")

    def lose(tx: Tx) -> None:
        tx.chats.seen(ChatSeen(chat=chat, channel="fake", at=START))
        tx.messages.add(
            Message(
                id=MessageId("m_1"),
                chat=chat,
                seq=tx.chats.raise_head(chat),
                ext_id="x",
                sender="ada",
                sender_name="Ada",
                text="hello?",
                at=START,
                kind=Kind.TEXT,
                wakes=True,
                state=State.QUEUED,
            )
        )

    clock = FakeClock()
    async with serving(opener, tmp_path, clock) as hall:
        await hall.quiet()
        await hall.store.write(lose)
        async with asyncio.timeout(PATIENCE):
            while not hall.turns:
                clock.advance(timedelta(minutes=2))
                await hall.quiet()

        assert hall.turns[0].chat == chat


async def test_many_wakes_from_many_writers_are_each_followed_by_a_turn(hall: Hall) -> None:
    """Trap: a wake-up dropped as a repeat while its twin is just being claimed."""
    written: dict[str, int] = dict.fromkeys("abcdefgh", 0)
    seen: dict[str, int] = dict.fromkeys("abcdefgh", 0)

    async def writer(name: str) -> None:
        for _ in range(25):
            written[name] += 1
            await hall.wake(name)

    async def answer() -> None:
        done = 0
        while seen != written or any(count < 25 for count in written.values()):
            turn = await hall.begun(done + 1)
            done += 1
            name = turn.chat.removeprefix("fake:")
            seen[name] = written[name]
            turn.end()

    async with asyncio.timeout(PATIENCE * 4), asyncio.TaskGroup() as tasks:
        tasks.create_task(answer())
        for name in written:
            tasks.create_task(writer(name))

    assert seen == dict.fromkeys("abcdefgh", 25)


# --- ticks ---------------------------------------------------------------------------------------


async def test_a_tick_waits_for_no_backoff_and_leaves_it_as_it_is(hall: Hall) -> None:
    later = hall.clock.now() + timedelta(hours=1)
    await hall.wake("a", not_before=later)
    before = await hall.row("a")
    await hall.quiet()

    await hall.ring("a")

    (await hall.begun(1)).end()
    assert await hall.row("a") == before
    assert before.not_before == later


async def test_a_backlog_that_waits_again_after_a_tick_keeps_its_time(hall: Hall) -> None:
    later = hall.clock.now() + timedelta(minutes=1)
    await hall.wake("a", not_before=later)
    await hall.ring("a")
    tick = await hall.begun(1)
    await hall.wake("a", not_before=later)
    tick.end()
    await hall.quiet()
    assert len(hall.turns) == 1

    hall.clock.advance(timedelta(minutes=1))

    await hall.begun(2)


async def test_a_tick_that_falls_due_during_a_turn_runs_right_after_it(hall: Hall) -> None:
    await hall.wake("a")
    turn = await hall.begun(1)
    await hall.ring("a")
    await hall.wake("a", not_before=hall.clock.now() + timedelta(hours=1))
    await hall.quiet()
    assert len(hall.turns) == 1

    turn.end()

    assert (await hall.begun(2)).chat == "fake:a"


async def test_ticks_and_messages_share_the_line_and_the_longest_wait_goes_first(
    hall: Hall,
) -> None:
    for name in "ab":
        await hall.ring(name)
    await hall.wake("c")
    await hall.ring("d")
    await hall.wake("e")
    await hall.ring("f")
    await hall.ring("c")  # its message has waited longer than d's tick
    for number in range(1, 7):
        turn = await hall.begun(number)
        assert hall.engine.health().running <= SIZES[SANDBOXES]
        turn.end()

    assert hall.names() == list("abcdef")


async def test_ticks_that_were_due_before_the_start_are_found(
    opener: Opener, tmp_path: Path
) -> None:
    clock = FakeClock()
    async with opener(tmp_path, clock) as (engine, store):
        before = Hall(engine, store, clock)
        await before.wake("a", not_before=clock.now() + timedelta(hours=1))
        for name in "ba":
            await before.ring(name)

    async with serving(opener, tmp_path, clock) as hall:
        for number in (1, 2):
            (await hall.begun(number)).end()
        assert hall.names() == list("ba")


async def test_a_due_tick_that_nobody_rang_for_is_found_by_the_sweep(
    opener: Opener, tmp_path: Path
) -> None:
    def lose(tx: Tx) -> None:
        task = a_task(_known(tx, "lost", SANDBOXES))
        tx.tasks.add(task)
        tx.tasks.add_tick(Tick(task=task.id, due=START, chat=task.chat, state=TickState.DUE))

    clock = FakeClock()
    async with serving(opener, tmp_path, clock) as hall:
        await hall.quiet()
        await hall.store.write(lose)
        async with asyncio.timeout(PATIENCE):
            while not hall.turns:
                clock.advance(timedelta(minutes=2))
                await hall.quiet()

        assert hall.turns[0].chat == "fake:lost"


async def test_a_ring_that_is_rolled_back_rings_nobody(hall: Hall) -> None:
    await hall.wake("a")
    (await hall.begun(1)).end()
    await hall.quiet()

    def fn(tx: Tx) -> None:
        hall.engine.ring(tx, ChatId("fake:a"))
        raise LookupError

    with pytest.raises(LookupError):
        await hall.store.write(fn)

    await hall.quiet()
    assert len(hall.turns) == 1


# --- trouble -------------------------------------------------------------------------------------


async def test_a_crash_stops_nobody_else_and_is_tried_again(hall: Hall) -> None:
    await hall.wake("a")
    await hall.wake("b")
    crashing = await hall.begun(1)
    steady = await hall.begun(2)

    crashing.end(crash=ZeroDivisionError("a turn that could not be recorded"))
    await hall.until(lambda: crashing.is_over)
    await hall.wake("c")
    await hall.begun(3)
    assert not steady.is_over
    steady.end()
    hall.clock.advance(timedelta(seconds=10))

    assert (await hall.begun(4)).chat == crashing.chat


# --- the end -------------------------------------------------------------------------------------


async def test_stop_begins_nothing_new_and_lets_running_turns_end(hall: Hall) -> None:
    for name in "abc":
        await hall.wake(name)
    turns = [await hall.begun(1), await hall.begun(2)]

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        stopping = tasks.create_task(hall.engine.stop(timedelta(minutes=1)))
        await hall.quiet()
        assert not stopping.done()
        for turn in turns:
            turn.end()

    assert hall.names() == ["a", "b"]
    assert not any(turn.was_cut for turn in turns)
    assert not hall.engine.health().ok


async def test_stop_cuts_short_what_does_not_end_in_time(hall: Hall) -> None:
    await hall.wake("a")
    turn = await hall.begun(1)

    async with asyncio.timeout(PATIENCE):
        await hall.engine.stop(timedelta(0))
    await hall.until(lambda: turn.is_over)

    assert turn.was_cut


async def test_an_engine_that_was_never_begun_can_be_stopped(
    opener: Opener, tmp_path: Path
) -> None:
    async with opener(tmp_path, FakeClock()) as (engine, _store):
        async with asyncio.timeout(PATIENCE):
            await engine.stop(timedelta(minutes=1))

        assert engine.health().why == "the engine is not running"


async def test_serving_returns_after_stop(opener: Opener, tmp_path: Path) -> None:
    clock = FakeClock()
    async with opener(tmp_path, clock) as (engine, store), asyncio.TaskGroup() as tasks:
        hall = Hall(engine, store, clock)
        serving_ = tasks.create_task(engine.serve(hall.run))
        await hall.wake("a")
        (await hall.begun(1)).end()
        async with asyncio.timeout(PATIENCE):
            await engine.stop(timedelta(seconds=1))
            await serving_


async def test_health_tells_how_the_line_looks(hall: Hall) -> None:
    for name in "abc":
        await hall.wake(name)
    await hall.begun(2)
    hall.clock.advance(timedelta(seconds=9))

    health = hall.engine.health()

    assert health.ok
    assert (health.waiting, health.running) == (1, 2)
    assert health.oldest_wait == timedelta(seconds=9)
    assert health.pools[SANDBOXES] == (2, 2)
