"""What every store promises, whatever its database."""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.backlog import Waiting
from hallporter.domain.chat import Chat, ChatSeen
from hallporter.domain.command import Box, Carried
from hallporter.domain.enclosure import Enclosure
from hallporter.domain.errors import ConflictError, FencedError, HallporterError, NotFoundError
from hallporter.domain.group import Group
from hallporter.domain.ids import (
    ChatId,
    CommandId,
    EnclosureId,
    Folder,
    MessageId,
    Pool,
    SessionId,
    TaskId,
    TokenId,
    TurnId,
)
from hallporter.domain.message import OPEN_STATES, Kind, Message, State
from hallporter.domain.notice import Failing, Notice, Undelivered
from hallporter.domain.outbox import Delivery, Outgoing, Part
from hallporter.domain.portion import PAGE_SIZE
from hallporter.domain.removal import Begun, Reason, Removal
from hallporter.domain.schedule import Schedule, Type
from hallporter.domain.task import ContextMode, Misfire, Status, Task, Tick, TickState
from hallporter.domain.token import Role, Token
from hallporter.domain.turn import Note, Outcome, Turn, What
from hallporter.domain.visit import Link, Session
from hallporter.ports import Store
from hallporter.stores.sqlite import open_store
from tests.fakes.clock import START, FakeClock

if TYPE_CHECKING:
    from hallporter.books import Tx

CHAT = ChatId("fake:family")
OTHER = ChatId("fake:work")
PATIENCE = 5.0  # seconds

Opener = Callable[[Path], AbstractAsyncContextManager[Store]]


def sqlite(folder: Path) -> AbstractAsyncContextManager[Store]:
    return open_store(folder / "hallporter.db", FakeClock())


# One line per database; each must keep every promise below.
ADAPTERS = {"sqlite": sqlite}


@pytest.fixture(params=ADAPTERS)
def opener(request: pytest.FixtureRequest) -> Opener:
    return ADAPTERS[request.param]


@pytest.fixture
async def store(opener: Opener, tmp_path: Path) -> AsyncIterator[Store]:
    async with asyncio.timeout(PATIENCE * 4), opener(tmp_path) as opened:
        for chat in (CHAT, OTHER):
            await opened.write(partial(see, chat=chat))
        yield opened


def see(tx: Tx, chat: ChatId) -> None:
    tx.chats.seen(ChatSeen(chat=chat, channel="fake", at=START))


def message(tx: Tx, number: int, chat: ChatId = CHAT, **changes: object) -> Message:
    """The next message of a chat; `number` makes its ids."""
    made = Message(
        id=MessageId(f"m_{chat}_{number}"),
        chat=chat,
        seq=tx.chats.raise_head(chat),
        ext_id=f"x{number}",
        sender="ada",
        sender_name="Ada",
        text=f"text {number}",
        at=START,
        kind=Kind.TEXT,
        wakes=True,
        state=State.QUEUED,
    )
    made = replace(made, **changes)  # type: ignore[arg-type]
    tx.messages.add(made)
    return made


def messages_after(tx: Tx, cursor: int) -> Sequence[Message]:
    return tx.messages.page(CHAT, cursor, 50)


def turn(number: int = 1, **changes: object) -> Turn:
    made = Turn(
        id=TurnId(f"t_{number}"),
        chat=CHAT,
        epoch=number,
        attempt=1,
        session_no=0,
        waiting_since=START,
        started_at=START + timedelta(seconds=number),
        cursor=0,
        piped=2,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def outgoing(key: str, *, parts: int = 1, chat: ChatId = CHAT, about: str = "m_1") -> Outgoing:
    return Outgoing(
        number=0,
        key=key,
        chat=chat,
        message=MessageId(about),
        at=START,
        parts=tuple(Part(body=f"part {n}", message_id=f"{key}.{n}") for n in range(parts)),
    )


GROUP = Group(
    chat=CHAT,
    name="Family",
    folder=Folder("Family"),
    trigger="@Andy",
    requires_trigger=True,
    is_main=True,
    added_at=START,
    agent={"kind": "demo", "command": ["a", "b"]},
)

TOKEN = Token(
    id=TokenId("tok_1"),
    digest="d1",
    role=Role.CONSUMER_APP,
    subject="ada",
    created_at=START,
    chat=CHAT,
    expires_at=START + timedelta(days=1),
)


async def chat_row(store: Store, chat: ChatId = CHAT) -> Chat:
    row = await store.read(lambda tx: tx.chats.get(chat))
    assert row is not None
    return row


# --- transactions --------------------------------------------------------------------------------


async def test_a_write_happens_whole_or_not_at_all(store: Store) -> None:
    def fn(tx: Tx) -> None:
        message(tx, 1)
        tx.outbox.put(outgoing("k"))
        raise LookupError("half way")

    with pytest.raises(LookupError, match="half way"):
        await store.write(fn)

    assert (await chat_row(store)).head == 0
    assert await store.read(lambda tx: tx.messages.page(CHAT, 0, 10)) == []
    assert not await store.read(lambda tx: tx.outbox.has("k"))


async def test_a_write_gives_what_the_closure_gives(store: Store) -> None:
    assert await store.write(lambda tx: tx.chats.raise_head(CHAT)) == 1


async def test_a_failing_closure_does_no_harm_to_its_neighbours(store: Store) -> None:
    def fn(tx: Tx, number: int) -> int:
        seq = message(tx, number).seq
        if number % 3 == 0:
            raise LookupError(str(number))
        return seq

    results = await asyncio.gather(
        *(store.write(partial(fn, number=n)) for n in range(60)),
        return_exceptions=True,
    )

    failed = [n for n, result in enumerate(results) if isinstance(result, LookupError)]
    assert failed == list(range(0, 60, 3))
    assert sorted(r for r in results if isinstance(r, int)) == list(range(1, 41))
    assert len(await store.read(lambda tx: tx.messages.page(CHAT, 0, 100))) == 40


async def test_a_write_that_the_database_refuses_does_no_harm_to_its_neighbours(
    store: Store,
) -> None:
    await store.write(lambda tx: message(tx, 0))

    results = await asyncio.gather(
        store.write(lambda tx: message(tx, 1)),
        store.write(lambda tx: message(tx, 0)),
        store.write(lambda tx: message(tx, 2)),
        return_exceptions=True,
    )

    assert isinstance(results[1], ConflictError)
    stored = await store.read(lambda tx: tx.messages.page(CHAT, 0, 10))
    assert [m.ext_id for m in stored] == ["x0", "x1", "x2"]


async def test_after_commit_runs_on_the_loop_once_the_write_can_be_read(store: Store) -> None:
    where: list[threading.Thread] = []
    heads: list[int] = []

    async def read() -> None:
        heads.append((await chat_row(store)).head)

    def look() -> None:
        where.append(threading.current_thread())
        tasks.create_task(read())

    def fn(tx: Tx) -> None:
        tx.after_commit(look)
        tx.chats.raise_head(CHAT)

    async with asyncio.TaskGroup() as tasks:
        await store.write(fn)

    assert where == [threading.current_thread()]
    assert heads == [1]


async def test_after_commit_never_runs_for_a_write_that_failed(store: Store) -> None:
    ran: list[str] = []

    def fails(tx: Tx) -> None:
        tx.after_commit(lambda: ran.append("failed"))
        raise LookupError

    with pytest.raises(LookupError):
        await store.write(fails)
    await store.write(lambda tx: tx.after_commit(lambda: ran.append("worked")))

    assert ran == ["worked"]


async def test_what_goes_wrong_after_a_commit_keeps_nobody_waiting(store: Store) -> None:
    ran: list[int] = []

    def fn(tx: Tx, number: int) -> int:
        if number == 0:
            tx.after_commit(lambda: ran.append(1 // number))
        tx.after_commit(lambda: ran.append(number))
        return number

    numbers = await asyncio.gather(*(store.write(partial(fn, number=n)) for n in range(5)))

    assert numbers == ran == [0, 1, 2, 3, 4]


async def test_a_caller_that_goes_away_does_not_undo_its_write(store: Store) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        entered.set()
        assert go_on.wait(PATIENCE)
        tx.chats.raise_head(CHAT)

    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(store.write(slow))
        await asyncio.to_thread(entered.wait, PATIENCE)
        leaving.cancel()
    go_on.set()

    assert await store.write(lambda tx: tx.chats.raise_head(CHAT)) == 2


async def test_a_read_sees_what_was_committed_and_nothing_else(store: Store) -> None:
    written, go_on = threading.Event(), threading.Event()

    def fn(tx: Tx) -> None:
        tx.chats.raise_head(CHAT)
        written.set()
        assert go_on.wait(PATIENCE)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.write(fn))
        await asyncio.to_thread(written.wait, PATIENCE)
        during = (await chat_row(store)).head
        go_on.set()

    assert (during, (await chat_row(store)).head) == (0, 1)


async def test_one_read_has_one_view_whatever_is_committed_meanwhile(store: Store) -> None:
    looked, go_on = threading.Event(), threading.Event()

    def fn(tx: Tx) -> tuple[int, int]:
        before = tx.chats.get(CHAT)
        looked.set()
        assert go_on.wait(PATIENCE)
        after = tx.chats.get(CHAT)
        assert before is not None
        assert after is not None
        return before.head, after.head

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(store.read(fn))
        await asyncio.to_thread(looked.wait, PATIENCE)
        await store.write(lambda tx: tx.chats.raise_head(CHAT))
        go_on.set()

    assert reading.result() == (0, 0)


async def test_a_read_must_not_write(store: Store) -> None:
    with pytest.raises(HallporterError):
        await store.read(lambda tx: tx.chats.raise_head(CHAT))

    assert (await chat_row(store)).head == 0


@pytest.mark.requirement("intake.store.survives-restart")
async def test_what_was_written_is_there_after_a_restart(opener: Opener, tmp_path: Path) -> None:
    async with opener(tmp_path) as first:
        await first.write(lambda tx: see(tx, CHAT))
        written = await first.write(lambda tx: message(tx, 1))

    async with opener(tmp_path) as second:
        assert await second.read(lambda tx: tx.messages.get(written.id)) == written


# --- chats ---------------------------------------------------------------------------------------


async def test_many_writers_get_numbers_without_gaps_in_the_order_of_their_commits(
    store: Store,
) -> None:
    committed: list[int] = []

    def fn(tx: Tx, number: int) -> None:
        seq = message(tx, number).seq
        if number % 7 == 0:
            raise LookupError  # its number must be given out again
        tx.after_commit(lambda: committed.append(seq))

    async def writer(name: int) -> None:
        for number in range(25):
            try:
                await store.write(partial(fn, number=name * 100 + number))
            except LookupError:
                continue

    async with asyncio.TaskGroup() as tasks:
        for name in range(20):
            tasks.create_task(writer(name))

    assert committed == list(range(1, len(committed) + 1))
    assert (await chat_row(store)).head == len(committed)


async def test_a_reader_that_follows_the_head_never_misses_a_message(store: Store) -> None:
    """Trap: numbers that commit out of order let a cursor pass one still in flight."""
    seen: list[str] = []

    async def follow() -> None:
        cursor = 0
        while len(seen) < 200:
            for found in await store.read(partial(messages_after, cursor=cursor)):
                seen.append(found.ext_id)
                cursor = found.seq

    async def writer(name: int) -> None:
        for number in range(20):
            await store.write(partial(message, number=name * 100 + number))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follow())
        for name in range(10):
            tasks.create_task(writer(name))

    assert len(set(seen)) == 200


async def test_a_chat_keeps_what_is_known_of_it(store: Store) -> None:
    later = START + timedelta(hours=1)
    seen = ChatSeen(chat=CHAT, channel="fake", at=later, name="Family", is_group=True, account="a")
    await store.write(lambda tx: tx.chats.seen(seen))
    await store.write(lambda tx: see(tx, CHAT))

    row = await chat_row(store)

    assert (row.name, row.is_group, row.seen_at) == ("Family", True, later)


async def test_a_chat_that_was_never_seen_is_none_and_cannot_be_locked(store: Store) -> None:
    stranger = ChatId("fake:nobody")

    assert await store.read(lambda tx: tx.chats.get(stranger)) is None
    for attempt in (lambda tx: tx.chats.lock(stranger), lambda tx: tx.chats.raise_head(stranger)):
        with pytest.raises(NotFoundError):
            await store.write(attempt)


async def test_all_chats_are_listed(store: Store) -> None:
    assert [chat.id for chat in await store.read(lambda tx: tx.chats.all())] == [CHAT, OTHER]


async def test_a_saved_chat_comes_back_as_it_was_but_for_its_head(store: Store) -> None:
    await store.write(lambda tx: [message(tx, number) for number in range(3)])

    def fn(tx: Tx) -> Chat:
        changed = replace(
            tx.chats.lock(CHAT),
            head=99,
            cursor=2,
            epoch=4,
            pool=Pool("remote"),
            session_no=3,
            session_id="s",
            woken_at=START,
            not_before=START + timedelta(seconds=5),
            attempts=2,
            is_parked=True,
            interruptions=1,
        )
        tx.chats.save(changed)
        return changed

    changed = await store.write(fn)

    assert await chat_row(store) == replace(changed, head=3)


async def test_only_the_claim_that_counts_may_hold_the_chat(store: Store) -> None:
    await store.write(lambda tx: tx.chats.save(replace(tx.chats.lock(CHAT), epoch=2)))

    held = await store.write(lambda tx: tx.chats.hold(CHAT, 2))

    assert held.epoch == 2
    for other in (1, 3):
        with pytest.raises(FencedError):
            await store.write(lambda tx, epoch=other: tx.chats.hold(CHAT, epoch))  # type: ignore[misc]


async def test_a_fenced_write_leaves_nothing_behind(store: Store) -> None:
    def fn(tx: Tx) -> None:
        tx.outbox.put(outgoing("zombie"))
        tx.chats.hold(CHAT, 7)

    with pytest.raises(FencedError):
        await store.write(fn)

    assert not await store.read(lambda tx: tx.outbox.has("zombie"))


async def test_woken_chats_come_longest_wait_first(store: Store) -> None:
    def fn(tx: Tx) -> None:
        tx.chats.save(tx.chats.lock(CHAT).woken(START + timedelta(seconds=1)))
        tx.chats.save(tx.chats.lock(OTHER).woken(START))

    await store.write(fn)

    assert [c.id for c in await store.read(lambda tx: tx.chats.woken())] == [OTHER, CHAT]


async def test_a_chat_is_forgotten_when_a_message_is_queued_and_nobody_will_come(
    store: Store,
) -> None:
    async def forgotten() -> list[ChatId]:
        return list(await store.read(lambda tx: tx.chats.forgotten()))

    await store.write(lambda tx: message(tx, 1, wakes=False, state=State.WAITING))
    assert await forgotten() == []
    await store.write(lambda tx: message(tx, 2))
    assert await forgotten() == [CHAT]
    await store.write(lambda tx: tx.turns.add(turn()))
    assert await forgotten() == []
    await store.write(lambda tx: tx.turns.save(turn(outcome=Outcome.INTERRUPTED)))
    await store.write(lambda tx: tx.chats.save(tx.chats.lock(CHAT).woken(START)))
    assert await forgotten() == []


# --- messages ------------------------------------------------------------------------------------


async def test_a_message_comes_back_as_it_was(store: Store) -> None:
    kept = await store.write(
        lambda tx: message(
            tx,
            1,
            text="naïve 天气 😀\n",
            why="trigger",
            turn=TurnId("t_1"),
            covers_after=0,
            covers_through=3,
        )
    )

    assert await store.read(lambda tx: tx.messages.get(kept.id)) == kept
    assert await store.read(lambda tx: tx.messages.get(MessageId("m_none"))) is None


async def test_a_message_is_found_by_our_id_and_by_the_networks(store: Store) -> None:
    first = await store.write(lambda tx: message(tx, 1))
    second = await store.write(lambda tx: message(tx, 1, OTHER))

    assert await store.read(lambda tx: tx.messages.find(first.id)) == [first]
    found = await store.read(lambda tx: tx.messages.find("x1"))
    assert {m.id for m in found} == {first.id, second.id}
    assert await store.read(lambda tx: tx.messages.find("nothing")) == []


async def test_a_message_is_unique_by_chat_sender_and_the_networks_id(store: Store) -> None:
    first = await store.write(lambda tx: message(tx, 1))
    await store.write(lambda tx: message(tx, 1, id=MessageId("m_b"), sender="bob"))
    await store.write(lambda tx: message(tx, 1, OTHER))

    with pytest.raises(ConflictError):
        await store.write(lambda tx: message(tx, 1, id=MessageId("m_c")))

    assert await store.read(lambda tx: tx.messages.repeat_of(CHAT, "ada", "x1")) == first
    assert await store.read(lambda tx: tx.messages.repeat_of(CHAT, "eve", "x1")) is None


async def test_no_message_of_a_person_is_without_a_fate(store: Store) -> None:
    with pytest.raises(ConflictError):
        await store.write(lambda tx: message(tx, 1, state=None))

    await store.write(lambda tx: message(tx, 2, state=None, kind=Kind.REPLY))


async def test_the_backlog_is_what_people_said_past_a_number_and_is_still_open(
    store: Store,
) -> None:
    def fn(tx: Tx) -> None:
        for number, state in enumerate(State):
            message(tx, number, state=state)
        message(tx, 50, kind=Kind.COMMAND, state=State.COMMAND)
        message(tx, 51, kind=Kind.REPLY, state=None)

    await store.write(fn)

    backlog = await store.read(lambda tx: tx.messages.backlog(CHAT, 0))
    assert {m.state for m in backlog} == set(OPEN_STATES)
    assert [m.seq for m in backlog] == sorted(m.seq for m in backlog)
    rest = await store.read(lambda tx: tx.messages.backlog(CHAT, backlog[0].seq))
    assert rest == backlog[1:]


async def test_the_first_waking_message_past_a_number_is_found(store: Store) -> None:
    def fn(tx: Tx) -> Message:
        message(tx, 1, wakes=False, state=State.WAITING)
        message(tx, 2, state=State.ANSWERED)
        return message(tx, 3)

    wanted = await store.write(fn)

    assert await store.read(lambda tx: tx.messages.first_waking(CHAT, 0)) == wanted
    assert await store.read(lambda tx: tx.messages.first_waking(CHAT, wanted.seq)) is None


async def test_a_page_is_in_order_and_no_longer_than_asked(store: Store) -> None:
    await store.write(lambda tx: [message(tx, number) for number in range(5)])

    page = await store.read(lambda tx: tx.messages.page(CHAT, 1, 3))

    assert [m.seq for m in page] == [2, 3, 4]


async def test_a_page_of_long_messages_has_fewer_and_at_least_one(store: Store) -> None:
    lengths = (PAGE_SIZE // 2, PAGE_SIZE // 2, 1, PAGE_SIZE + 1, 1)
    await store.write(
        lambda tx: [message(tx, n, text="x" * length) for n, length in enumerate(lengths)]
    )

    pages = [await store.read(partial(messages_after, cursor=place)) for place in (0, 2, 3, 4)]

    assert [[m.seq for m in page] for page in pages] == [[1, 2], [3], [4], [5]]


async def test_the_backlog_can_be_measured_without_its_words(store: Store) -> None:
    def fn(tx: Tx) -> None:
        message(tx, 1, text="天天")
        message(tx, 2, state=State.ANSWERED)
        message(tx, 3, text="abc", wakes=False, state=State.WAITING)

    await store.write(fn)

    waiting = await store.read(lambda tx: tx.messages.waiting(CHAT, 0))

    assert waiting == [Waiting(seq=1, size=2, wakes=True), Waiting(seq=3, size=3, wakes=False)]


async def test_marking_moves_only_people_s_messages_in_range_and_state(store: Store) -> None:
    def fn(tx: Tx) -> list[MessageId]:
        message(tx, 1)
        message(tx, 2, state=State.RUNNING)
        message(tx, 3, state=State.RUNNING, kind=Kind.COMMAND)
        message(tx, 4, state=State.STOPPED)
        message(tx, 5, state=State.RUNNING)
        return list(
            tx.messages.mark(
                CHAT,
                after=1,
                through=4,
                was=(State.RUNNING,),
                state=State.ANSWERED,
                turn=TurnId("t_9"),
            )
        )

    marked = await store.write(fn)

    assert marked == [MessageId(f"m_{CHAT}_2")]
    page = await store.read(lambda tx: tx.messages.page(CHAT, 0, 10))
    assert [m.state for m in page] == [
        State.QUEUED,
        State.ANSWERED,
        State.RUNNING,
        State.STOPPED,
        State.RUNNING,
    ]
    assert page[1].turn == "t_9"


async def test_marking_without_a_turn_keeps_the_one_that_was_there(store: Store) -> None:
    def fn(tx: Tx) -> Message | None:
        kept = message(tx, 1, turn=TurnId("t_1"))
        tx.messages.mark(CHAT, after=0, through=9, was=OPEN_STATES, state=State.STOPPED, turn=None)
        return tx.messages.get(kept.id)

    kept = await store.write(fn)

    assert kept is not None
    assert (kept.state, kept.turn) == (State.STOPPED, "t_1")


async def test_replies_are_found_by_the_message_they_answer_and_by_their_turn(
    store: Store,
) -> None:
    def fn(tx: Tx) -> None:
        message(tx, 1)
        message(tx, 2)
        reply = partial(message, tx, kind=Kind.REPLY, state=None, turn=TurnId("t_1"))
        reply(3, covers_after=0, covers_through=1)
        reply(4, covers_after=1, covers_through=2)
        reply(5)

    await store.write(fn)

    for seq, answer in ((1, "x3"), (2, "x4")):
        found = await store.read(lambda tx, seq=seq: tx.messages.replies(CHAT, seq))  # type: ignore[misc]
        assert [m.ext_id for m in found] == [answer]


async def test_open_messages_are_counted_by_state(store: Store) -> None:
    def fn(tx: Tx) -> None:
        message(tx, 1)
        message(tx, 2)
        message(tx, 3, state=State.ANSWERED)
        message(tx, 4, state=None, kind=Kind.NOTICE)

    await store.write(fn)

    assert await store.read(lambda tx: tx.messages.counts()) == {"queued": 2}


# --- turns ---------------------------------------------------------------------------------------


async def test_a_turn_comes_back_as_it_was_and_as_it_was_changed(store: Store) -> None:
    await store.write(lambda tx: tx.turns.add(turn()))
    ended = turn(piped=5, ended_at=START, outcome=Outcome.FAILED, why="overloaded")

    await store.write(lambda tx: tx.turns.save(ended))

    assert await store.read(lambda tx: tx.turns.get(TurnId("t_1"))) == ended
    assert await store.read(lambda tx: tx.turns.get(TurnId("t_9"))) is None


async def test_at_most_one_turn_is_open_in_a_chat(store: Store) -> None:
    await store.write(lambda tx: tx.turns.add(turn(1)))
    with pytest.raises(ConflictError):
        await store.write(lambda tx: tx.turns.add(turn(2)))

    assert await store.read(lambda tx: tx.turns.open_in(CHAT)) == turn(1)
    assert await store.read(lambda tx: tx.turns.open_in(OTHER)) is None


async def test_an_epoch_has_one_turn(store: Store) -> None:
    await store.write(lambda tx: tx.turns.add(turn(1, outcome=Outcome.ANSWERED)))

    with pytest.raises(ConflictError):
        await store.write(lambda tx: tx.turns.add(turn(2, epoch=1)))


async def test_unfinished_turns_are_those_without_an_outcome(store: Store) -> None:
    def fn(tx: Tx) -> None:
        tx.turns.add(turn(1, outcome=Outcome.ANSWERED))
        tx.turns.add(turn(2))
        tx.turns.add(turn(3, chat=OTHER))

    await store.write(fn)

    assert [t.id for t in await store.read(lambda tx: tx.turns.unfinished())] == ["t_2", "t_3"]


async def test_the_turns_that_were_given_a_message_come_in_order(store: Store) -> None:
    def fn(tx: Tx) -> None:
        tx.turns.add(turn(2, outcome=Outcome.ANSWERED))
        tx.turns.add(turn(1, outcome=Outcome.FAILED))
        tx.turns.add(turn(3, cursor=2, piped=4))

    await store.write(fn)

    given = await store.read(lambda tx: tx.turns.given(CHAT, 2))
    assert [t.id for t in given] == ["t_1", "t_2"]


async def test_notes_come_back_in_the_order_they_were_made(store: Store) -> None:
    notes = [
        Note(turn=TurnId("t_1"), at=START, what=what, after=0, through=2, why=str(what))
        for what in What
    ]

    def fn(tx: Tx) -> None:
        tx.turns.add(turn())
        for note in notes:
            tx.turns.note(note)

    await store.write(fn)

    assert await store.read(lambda tx: tx.turns.notes([TurnId("t_1"), TurnId("t_9")])) == notes


async def test_recent_failures_come_newest_first(store: Store) -> None:
    def fn(tx: Tx) -> None:
        for number in (1, 2, 3):
            ended = START + timedelta(hours=number)
            tx.turns.add(turn(number, outcome=Outcome.FAILED, ended_at=ended))
        tx.turns.add(turn(4, outcome=Outcome.ANSWERED, ended_at=START + timedelta(hours=4)))

    await store.write(fn)

    since = START + timedelta(hours=2)
    assert [t.id for t in await store.read(lambda tx: tx.turns.failures(since))] == ["t_3", "t_2"]


@pytest.mark.rule("R1")
async def test_the_database_itself_holds_head_and_piped_above_the_cursor(store: Store) -> None:
    with pytest.raises(ConflictError):
        await store.write(lambda tx: tx.chats.save(replace(tx.chats.lock(CHAT), cursor=1)))
    with pytest.raises(ConflictError):
        await store.write(lambda tx: tx.turns.add(turn(cursor=3, piped=2)))


# --- outbox --------------------------------------------------------------------------------------


async def test_words_of_ours_are_found_by_every_id_they_went_out_under(store: Store) -> None:
    await store.write(lambda tx: tx.outbox.put(outgoing("k", parts=2)))

    found = await store.read(
        lambda tx: [
            tx.outbox.said_as(chat, name)
            for chat, name in ((CHAT, "k.0"), (CHAT, "k.1"), (CHAT, "k.2"), (OTHER, "k.0"))
        ]
    )
    assert found == ["m_1", "m_1", None, None]


async def test_a_key_is_written_once(store: Store) -> None:
    assert await store.write(lambda tx: tx.outbox.put(outgoing("k", parts=2)))
    assert not await store.write(lambda tx: tx.outbox.put(outgoing("k", parts=3)))

    rows = await store.read(lambda tx: tx.outbox.pending(CHAT, 10))
    assert [len(row.parts) for row in rows] == [2]
    assert await store.read(lambda tx: (tx.outbox.has("k"), tx.outbox.has("j"))) == (True, False)


async def test_unsent_rows_come_in_the_order_they_were_put(store: Store) -> None:
    def fn(tx: Tx) -> None:
        for number in range(5):
            tx.outbox.put(outgoing(f"k{number}", chat=CHAT if number % 2 else OTHER))

    await store.write(fn)

    pending = await store.read(lambda tx: tx.outbox.pending(OTHER, 2))
    assert [row.key for row in pending] == ["k0", "k2"]
    assert set(await store.read(lambda tx: tx.outbox.chats_with_pending())) == {CHAT, OTHER}


def enclosure(number: int) -> Enclosure:
    return Enclosure(
        id=EnclosureId(f"f_{number}"),
        folder=Folder("family"),
        name=f"\"\u05d0 {number}'.txt",
        size=number,
        type="text/plain",
    )


async def test_files_go_along_with_messages_and_parts(store: Store) -> None:
    one, two, three = map(enclosure, (1, 2, 3))
    row = outgoing("cmd:1")
    row = replace(row, parts=(replace(row.parts[0], files=(one, two)),))

    def fn(tx: Tx) -> Sequence[Message]:
        tx.outbox.put(row)
        return [
            message(tx, 1, files=(one, two)),
            message(tx, 2),
            message(tx, 3, files=(three,)),
            message(tx, 4, OTHER, files=(enclosure(4),)),
        ]

    made = await store.write(fn)
    found = await store.read(lambda tx: [tx.messages.get(one.id) for one in made])
    assert found == made
    assert await store.read(lambda tx: tx.messages.files(CHAT)) == [three, one, two]
    everywhere = await store.read(lambda tx: tx.messages.files())
    assert {file.id for file in everywhere} == {"f_1", "f_2", "f_3", "f_4"}
    (pending,) = await store.read(lambda tx: tx.outbox.pending(CHAT, 10))
    assert pending.parts == row.parts


async def test_parts_and_rows_come_to_their_end(store: Store) -> None:
    await store.write(lambda tx: tx.outbox.put(outgoing("k", parts=2)))
    row = (await store.read(lambda tx: tx.outbox.pending(CHAT, 1)))[0]
    sent = replace(row.parts[0], state=Delivery.SENT, attempts=2)

    await store.write(lambda tx: tx.outbox.save_part(row.number, 0, sent))
    half = (await store.read(lambda tx: tx.outbox.pending(CHAT, 1)))[0]
    await store.write(lambda tx: tx.outbox.finish(row.number, Delivery.UNDELIVERABLE, "gone"))

    assert half.parts == (sent, row.parts[1])
    assert await store.read(lambda tx: tx.outbox.pending(CHAT, 1)) == []
    assert await store.read(lambda tx: tx.outbox.chats_with_pending()) == []
    ended = (await store.read(lambda tx: tx.outbox.of_messages([MessageId("m_1")])))[0]
    assert (ended.state, ended.why) == (Delivery.UNDELIVERABLE, "gone")
    assert await store.read(lambda tx: tx.outbox.counts()) == {"undeliverable": 1}


# --- groups and tokens ---------------------------------------------------------------------------


async def test_a_group_comes_back_by_chat_by_folder_and_as_main(store: Store) -> None:
    await store.write(lambda tx: tx.groups.add(GROUP))

    assert await store.read(lambda tx: tx.groups.of_chat(CHAT)) == GROUP
    assert await store.read(lambda tx: tx.groups.of_folder("fAMILY")) == GROUP
    assert await store.read(lambda tx: tx.groups.main()) == GROUP
    assert await store.read(lambda tx: tx.groups.of_chat(OTHER)) is None


async def test_folders_differ_by_more_than_letter_case_and_one_group_is_main(
    store: Store,
) -> None:
    await store.write(lambda tx: tx.groups.add(GROUP))
    other = replace(GROUP, chat=OTHER, folder=Folder("work"), is_main=False)

    for wrong in (
        replace(other, folder=Folder("FAMILY")),
        replace(other, is_main=True),
        replace(other, chat=CHAT),
        replace(other, chat=ChatId("fake:never-seen")),
    ):
        with pytest.raises(ConflictError):
            await store.write(lambda tx, wrong=wrong: tx.groups.add(wrong))  # type: ignore[misc]
    await store.write(lambda tx: tx.groups.add(other))

    assert await store.read(lambda tx: tx.groups.all()) == [GROUP, other]
    assert await store.read(lambda tx: tx.groups.count()) == 2


async def test_a_group_changes_and_goes(store: Store) -> None:
    await store.write(lambda tx: tx.groups.add(GROUP))
    changed = replace(GROUP, name="Us", trigger="@Bo", requires_trigger=False, agent={})

    await store.write(lambda tx: tx.groups.save(changed))
    saved = await store.read(lambda tx: tx.groups.all())
    await store.write(lambda tx: tx.groups.remove(GROUP.folder))

    assert saved == [changed]
    assert await store.read(lambda tx: (tx.groups.main(), tx.groups.all())) == (None, [])


async def test_a_token_comes_back_by_digest_and_id_and_can_be_revoked(store: Store) -> None:
    await store.write(lambda tx: tx.tokens.add(TOKEN))
    revoked = replace(TOKEN, used_at=START, revoked_at=START)

    assert await store.read(lambda tx: tx.tokens.of_digest("d1")) == TOKEN
    await store.write(lambda tx: tx.tokens.save(revoked))

    assert await store.read(lambda tx: tx.tokens.get(TOKEN.id)) == revoked
    assert await store.read(lambda tx: tx.tokens.all()) == [revoked]
    assert await store.read(lambda tx: tx.tokens.of_digest("d2")) is None
    with pytest.raises(ConflictError):
        await store.write(lambda tx: tx.tokens.add(replace(TOKEN, id=TokenId("tok_2"))))


# --- sessions and links --------------------------------------------------------------------------

SESSION = Session(
    id=SessionId("s_1"),
    digest="d1",
    created_at=START,
    used_at=START,
    token=TokenId("tok_1"),
    address="10.0.0.1",
    browser="A browser",
)


async def test_a_session_comes_back_by_digest_and_id_the_last_used_first(store: Store) -> None:
    later = replace(SESSION, id=SessionId("s_2"), digest="d2", token=None)
    used = replace(later, used_at=START + timedelta(days=1))
    await store.write(lambda tx: tx.sessions.add(SESSION))
    await store.write(lambda tx: tx.sessions.add(later))
    await store.write(lambda tx: tx.sessions.save(used))

    assert await store.read(lambda tx: tx.sessions.of_digest("d1")) == SESSION
    assert await store.read(lambda tx: tx.sessions.get(used.id)) == used
    assert await store.read(lambda tx: tx.sessions.of_digest("d3")) is None
    assert await store.read(lambda tx: tx.sessions.all()) == [used, SESSION]


async def test_revoked_and_unused_sessions_are_forgotten(store: Store) -> None:
    revoked = replace(SESSION, revoked_at=START)
    unused = replace(SESSION, id=SessionId("s_2"), digest="d2", used_at=START - timedelta(days=1))
    kept = replace(SESSION, id=SessionId("s_3"), digest="d3")
    for session in (revoked, unused, kept):
        await store.write(partial(_add_session, session=session))
    await store.write(lambda tx: tx.sessions.forget(START))

    assert await store.read(lambda tx: tx.sessions.all()) == [kept]


def _add_session(tx: Tx, session: Session) -> None:
    tx.sessions.add(session)


async def test_a_link_is_used_and_forgotten(store: Store) -> None:
    link = Link(digest="d1", expires_at=START)
    await store.write(lambda tx: tx.links.add(link))
    assert await store.read(lambda tx: tx.links.get("d1")) == link
    await store.write(lambda tx: tx.links.use("d1", START))
    assert await store.read(lambda tx: tx.links.get("d1")) == replace(link, used_at=START)
    await store.write(lambda tx: tx.links.forget(START))
    assert await store.read(lambda tx: tx.links.get("d1")) is not None
    await store.write(lambda tx: tx.links.forget(START + timedelta(seconds=1)))
    assert await store.read(lambda tx: tx.links.get("d1")) is None


# --- notices and removals -------------------------------------------------------------------------


async def test_a_notice_comes_back_as_it_was_and_is_open_until_resolved(store: Store) -> None:
    disk = Notice(key="disk", text="nearly full", raised_at=START)
    swept = Notice(key="swept", text="3 messages", raised_at=START, is_quiet=True)
    over = replace(disk, told_at=START, resolved_at=START + timedelta(hours=1))
    for notice in (disk, swept):
        await store.write(partial(_save_notice, notice=notice))
    assert await store.read(lambda tx: tx.notices.open()) == [disk, swept]
    await store.write(lambda tx: tx.notices.save(over))
    assert await store.read(lambda tx: tx.notices.open()) == [swept]
    assert await store.read(lambda tx: tx.notices.all()) == [over, swept]
    assert await store.read(lambda tx: tx.notices.get("disk")) == over
    assert await store.read(lambda tx: tx.notices.get("nothing")) is None


def _save_notice(tx: Tx, notice: Notice) -> None:
    tx.notices.save(notice)


async def test_a_group_fails_by_its_last_ended_turn(store: Store) -> None:
    failed = turn(1, outcome=Outcome.FAILED, ended_at=START, why="no program")

    def end(tx: Tx) -> None:
        tx.groups.add(GROUP)
        tx.turns.add(failed)

    await store.write(end)
    expected = Failing(chat=CHAT, folder="Family", why="no program", is_stuck=True)
    assert await store.read(lambda tx: tx.notices.failing()) == [expected]
    await store.write(lambda tx: tx.turns.add(turn(2)))  # the next one runs
    running = await store.read(lambda tx: tx.notices.failing())
    assert running == [replace(expected, is_stuck=False)]
    answered = turn(2, outcome=Outcome.ANSWERED, ended_at=START)
    await store.write(lambda tx: tx.turns.save(answered))
    assert await store.read(lambda tx: tx.notices.failing()) == []


async def test_undelivered_replies_are_counted_by_chat_since_a_time(store: Store) -> None:
    def refuse(tx: Tx) -> None:
        for number in (1, 2):
            tx.outbox.put(replace(outgoing(f"k{number}"), at=START + timedelta(hours=number)))
        for row in tx.outbox.pending(CHAT, 9):
            tx.outbox.finish(row.number, Delivery.UNDELIVERABLE, f"refused {row.key}")

    await store.write(refuse)
    last = START + timedelta(hours=2)
    both = Undelivered(chat=CHAT, count=2, last=last, why="refused k2")
    assert await store.read(lambda tx: tx.notices.undelivered(START)) == [both]
    assert await store.read(lambda tx: tx.notices.undelivered(last)) == [replace(both, count=1)]
    later = last + timedelta(hours=1)
    assert await store.read(lambda tx: tx.notices.undelivered(later)) == []


async def test_the_last_removal_is_known_by_its_reason(store: Store) -> None:
    first = Removal(at=START, reason=Reason.RETENTION, counts={"messages": 3})
    second = replace(first, at=START + timedelta(days=1), counts={"logs": 1})
    forgotten = Removal(at=START, reason=Reason.FORGET, chat=CHAT, counts={"files": 2})
    assert await store.read(lambda tx: tx.removals.last(Reason.RETENTION)) is None
    for removal in (first, second, forgotten):
        await store.write(partial(_note_removal, removal=removal))
    assert await store.read(lambda tx: tx.removals.last(Reason.RETENTION)) == second
    assert await store.read(lambda tx: tx.removals.last(Reason.FORGET)) == forgotten


def _note_removal(tx: Tx, removal: Removal) -> None:
    tx.removals.add(removal)


async def test_only_what_nobody_waits_for_is_old_and_can_be_dropped(store: Store) -> None:
    def fill(tx: Tx) -> None:
        message(tx, 1, state=State.ANSWERED)
        message(tx, 2, state=State.WAITING)
        message(tx, 3, state=State.QUEUED)
        message(tx, 4, kind=Kind.REPLY, state=None)
        tx.outbox.put(outgoing("k4", about=f"m_{CHAT}_4"))
        message(tx, 5, state=State.ANSWERED, at=START + timedelta(days=1))
        message(tx, 6, OTHER, state=State.ANSWERED)
        tx.turns.add(turn(chat=OTHER))

    await store.write(fill)
    before = START + timedelta(hours=1)
    found = await store.read(lambda tx: tx.removals.old_messages(before, 9))
    assert set(found) == {f"m_{CHAT}_1", f"m_{CHAT}_2"}
    assert len(await store.read(lambda tx: tx.removals.old_messages(before, 1))) == 1
    assert await store.write(lambda tx: tx.removals.drop_message(found[0]))
    assert not await store.write(lambda tx: tx.removals.drop_message(found[0]))
    needed = MessageId(f"m_{OTHER}_6")
    assert not await store.write(lambda tx: tx.removals.drop_message(needed))


async def test_a_failed_message_is_old_unless_it_is_tried_again_by_itself(store: Store) -> None:
    def fill(tx: Tx) -> None:
        message(tx, 1, state=State.FAILED)
        message(tx, 2, OTHER, state=State.FAILED)
        tx.chats.save(tx.chats.lock(OTHER).woken(START))

    await store.write(fill)
    before = START + timedelta(hours=1)
    assert await store.read(lambda tx: tx.removals.old_messages(before, 9)) == [f"m_{CHAT}_1"]
    assert await store.write(lambda tx: tx.removals.drop_message(MessageId(f"m_{CHAT}_1")))
    assert not await store.write(lambda tx: tx.removals.drop_message(MessageId(f"m_{OTHER}_2")))


async def test_a_scrub_is_owed_until_it_is_done_and_again_by_what_came_meanwhile(
    store: Store,
) -> None:
    assert await store.read(lambda tx: tx.removals.owed_scrub()) is None
    await store.write(lambda tx: tx.removals.owe_scrub(START))
    owed = await store.read(lambda tx: tx.removals.owed_scrub())
    assert owed is not None
    await store.write(lambda tx: tx.removals.owe_scrub(START))
    await store.write(lambda tx: tx.removals.scrubbed(owed))
    rest = await store.read(lambda tx: tx.removals.owed_scrub())
    assert rest is not None
    await store.write(lambda tx: tx.removals.scrubbed(rest))
    assert await store.read(lambda tx: tx.removals.owed_scrub()) is None


def begin(tx: Tx, begun: Begun) -> None:
    tx.removals.begin(begun)


async def test_a_forgetting_that_has_begun_is_known_until_it_is_finished(store: Store) -> None:
    first = Begun(chat=CHAT, head=3, purges=False, counts={"messages": 2})
    again = Begun(chat=CHAT, head=4, purges=True, counts={"messages": 3})
    other = Begun(chat=OTHER, head=1, purges=False, counts={})
    for begun in (first, other, again):
        await store.write(partial(begin, begun=begun))
    found = await store.read(lambda tx: tx.removals.begun())
    assert {one.chat: one for one in found} == {CHAT: again, OTHER: other}
    await store.write(lambda tx: tx.removals.finished(CHAT))
    assert await store.read(lambda tx: tx.removals.begun()) == [other]


async def test_nothing_of_what_was_deleted_is_in_the_files_after_a_scrub(
    store: Store, tmp_path: Path
) -> None:
    """With all that happens to rows before: moved between pages, changed, others deleted."""
    kinds = (5, 40, 300, 900, 6000)  # characters: some rows fill more than a page
    chaos = random.Random(10)  # one for which SQLite's own overwriting leaves traces
    ids: list[MessageId] = []

    def live(tx: Tx, start: int) -> None:
        for number in range(start, start + 100):
            chat = chaos.choice((CHAT, OTHER))
            text = f"SECRET-{chat}-{number:05d}-" + "x" * chaos.choice(kinds)
            ids.append(message(tx, number, chat, text=text, state=State.ANSWERED).id)
            if chaos.random() < 0.3:
                tx.removals.drop_message(ids.pop(chaos.randrange(len(ids))))

    for start in range(0, 1200, 100):
        await store.write(partial(live, start=start))
    await store.write(lambda tx: tx.removals.forget(CHAT))
    assert await store.scrub()
    kept = await store.read(lambda tx: texts(tx, OTHER))
    found = re.findall(rb"SECRET-[a-z:]+-\d{5}", contents(tmp_path))
    assert {one.decode() for one in found} == {
        text[: len("SECRET-fake:work-00000")] for text in kept
    }


def texts(tx: Tx, chat: ChatId) -> list[str]:
    found: list[str] = []
    seq = 0
    while page := tx.messages.page(chat, seq, 200):
        found += [message.text for message in page]
        seq = page[-1].seq
    return found


def contents(folder: Path) -> bytes:
    """All that a store has written, whatever files it makes."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_writes_and_reads_go_on_during_a_scrub(store: Store) -> None:
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        scrubbing = tasks.create_task(store.scrub())
        for number in range(20):
            tasks.create_task(store.write(partial(message, number=number)))
            tasks.create_task(store.read(lambda tx: tx.groups.all()))
    assert scrubbing.result()
    assert len(await store.read(lambda tx: tx.messages.page(CHAT, 0, 50))) == 20


async def test_turns_go_when_no_message_is_left_of_them(store: Store) -> None:
    def fill(tx: Tx) -> None:
        for number in (1, 2, 3):
            tx.turns.add(turn(number, outcome=Outcome.ANSWERED, ended_at=START))
            tx.turns.note(
                Note(turn=TurnId(f"t_{number}"), at=START, what=What.GIVEN, after=0, through=1)
            )
        message(tx, 1, state=State.ANSWERED, turn=TurnId("t_1"))
        tx.turns.add(turn(4))

    await store.write(fill)
    before = START + timedelta(hours=1)
    assert await store.write(lambda tx: tx.removals.drop_turns(before, 1)) == 1
    assert await store.write(lambda tx: tx.removals.drop_turns(before, 9)) == 1
    assert await store.write(lambda tx: tx.removals.drop_turns(before, 9)) == 0
    assert await store.read(lambda tx: tx.turns.get(TurnId("t_1"))) is not None
    assert await store.read(lambda tx: tx.turns.get(TurnId("t_4"))) is not None


async def test_a_forgotten_chat_keeps_its_row_and_its_neighbours_keep_all(store: Store) -> None:
    def fill(tx: Tx) -> None:
        message(tx, 1)
        message(tx, 2, OTHER)
        tx.turns.add(turn())
        tx.turns.note(Note(turn=TurnId("t_1"), at=START, what=What.GIVEN, after=0, through=1))
        tx.outbox.put(outgoing("k1", parts=2))
        tx.outbox.put(outgoing("k2", chat=OTHER))

        add_task(tx, 1)
        add_ticks(tx, tick())
        add_task(tx, 2, chat=OTHER)

    await store.write(fill)
    counts = await store.write(lambda tx: tx.removals.forget(CHAT))
    assert counts == {"messages": 1, "turns": 1, "sent_replies": 1, "tasks": 1}
    assert [task.id for task in await store.read(lambda tx: tx.tasks.all())] == ["task_2"]
    kept = await store.read(lambda tx: tx.chats.get(CHAT))
    assert kept is not None
    assert kept.head == 1
    assert await store.read(lambda tx: tx.messages.page(CHAT, 0, 9)) == []
    assert len(await store.read(lambda tx: tx.messages.page(OTHER, 0, 9))) == 1
    assert len(await store.read(lambda tx: tx.outbox.pending(OTHER, 9))) == 1


# --- tasks ---------------------------------------------------------------------------------------

TASK = Task(
    id=TaskId("task_1"),
    folder=Folder("family"),
    chat=CHAT,
    prompt="Say good morning.",
    schedule=Schedule(type=Type.CRON, value="0 9 * * *", timezone="Europe/Berlin"),
    context_mode=ContextMode.ISOLATED,
    misfire=Misfire.ALL,
    status=Status.ACTIVE,
    anchor=START,
    next_at=START + timedelta(hours=1),
    created_at=START,
    created_by="family",
)


def tick(minutes: int = 0, **changes: object) -> Tick:
    due = START + timedelta(minutes=minutes)
    made = Tick(task=TASK.id, due=due, chat=CHAT, state=TickState.DUE)
    return replace(made, **changes)  # type: ignore[arg-type]


def add_task(tx: Tx, number: int, **changes: object) -> None:
    changes.setdefault("created_at", START + timedelta(seconds=number))
    tx.tasks.add(replace(TASK, id=TaskId(f"task_{number}"), **changes))  # type: ignore[arg-type]


def add_ticks(tx: Tx, *ticks: Tick) -> None:
    for one in ticks:
        assert tx.tasks.add_tick(one)


async def test_a_task_comes_back_as_it_was_and_as_it_was_changed(store: Store) -> None:
    await store.write(lambda tx: tx.tasks.add(TASK))
    assert await store.read(lambda tx: tx.tasks.get(TASK.id)) == TASK
    assert await store.read(lambda tx: tx.tasks.get(TaskId("task_9"))) is None
    changed = replace(
        TASK,
        prompt="Say good night.",
        schedule=Schedule(type=Type.INTERVAL, value="1000", timezone="UTC"),
        context_mode=ContextMode.GROUP,
        misfire=Misfire.SKIP,
        status=Status.PAUSED,
        anchor=START + timedelta(days=1),
        next_at=None,
        last_at=START,
        failures=3,
    )

    await store.write(lambda tx: tx.tasks.save(changed))

    assert await store.read(lambda tx: tx.tasks.get(TASK.id)) == changed


async def test_an_id_has_one_task_and_only_an_active_one_has_a_next_time(store: Store) -> None:
    await store.write(lambda tx: tx.tasks.add(TASK))

    for wrong in (
        TASK,
        replace(TASK, id=TaskId("task_2"), chat=ChatId("fake:never-seen")),
        replace(TASK, id=TaskId("task_2"), status=Status.PAUSED),
    ):
        with pytest.raises(ConflictError):
            await store.write(lambda tx, wrong=wrong: tx.tasks.add(wrong))  # type: ignore[misc]


async def test_tasks_are_listed_oldest_first_by_folder_and_counted_by_status(
    store: Store,
) -> None:
    def fn(tx: Tx) -> None:
        add_task(tx, 2)
        add_task(tx, 1, status=Status.PAUSED, next_at=None)
        add_task(tx, 3, folder=Folder("work"), chat=OTHER)

    await store.write(fn)

    everyone = await store.read(lambda tx: tx.tasks.all())
    family = await store.read(lambda tx: tx.tasks.of_folder(Folder("family")))
    assert [task.id for task in everyone] == ["task_1", "task_2", "task_3"]
    assert [task.id for task in family] == ["task_1", "task_2"]
    assert await store.read(lambda tx: tx.tasks.counts()) == {"active": 2, "paused": 1}


async def test_due_tasks_come_earliest_first_and_no_more_than_asked(store: Store) -> None:
    def fn(tx: Tx) -> None:
        for number, minutes in ((1, 3), (2, 1), (3, 2), (4, 9)):
            add_task(tx, number, next_at=START + timedelta(minutes=minutes))
        add_task(tx, 5, status=Status.COMPLETED, next_at=None)

    await store.write(fn)

    now = START + timedelta(minutes=3)
    due = await store.read(lambda tx: tx.tasks.due(now, 2))
    everyone = await store.read(lambda tx: tx.tasks.due(now, 9))
    assert [task.id for task in due] == ["task_2", "task_3"]
    assert [task.id for task in everyone] == ["task_2", "task_3", "task_1"]
    assert await store.read(lambda tx: tx.tasks.next_at()) == START + timedelta(minutes=1)


async def test_without_an_active_task_there_is_no_next_time(store: Store) -> None:
    await store.write(lambda tx: add_task(tx, 1, status=Status.PAUSED, next_at=None))

    assert await store.read(lambda tx: tx.tasks.next_at()) is None


async def test_a_due_time_has_one_row(store: Store) -> None:
    await store.write(lambda tx: tx.tasks.add(TASK))

    assert await store.write(lambda tx: tx.tasks.add_tick(tick()))
    assert not await store.write(lambda tx: tx.tasks.add_tick(tick(why="again")))

    assert await store.read(lambda tx: tx.tasks.ticks(TASK.id, 9)) == [tick()]


async def test_a_tick_of_no_task_is_refused(store: Store) -> None:
    with pytest.raises(ConflictError):
        await store.write(lambda tx: tx.tasks.add_tick(tick()))


async def test_a_tick_comes_back_as_it_was_changed(store: Store) -> None:
    ran = tick(
        state=TickState.LATE,
        why="missed",
        started_at=START + timedelta(minutes=2),
        ended_at=START + timedelta(minutes=3),
        attempts=2,
    )

    def fn(tx: Tx) -> None:
        tx.tasks.add(TASK)
        tx.tasks.add_tick(tick())
        tx.tasks.save_tick(ran)

    await store.write(fn)

    assert await store.read(lambda tx: tx.tasks.tick(TASK.id, START)) == ran
    assert await store.read(lambda tx: tx.tasks.tick(TASK.id, START + timedelta(1))) is None


async def test_the_earliest_waiting_tick_of_a_chat_is_found(store: Store) -> None:
    def fn(tx: Tx) -> None:
        add_task(tx, 1)
        add_task(tx, 2, chat=OTHER)
        add_ticks(
            tx,
            tick(3),
            tick(2),
            tick(1, state=TickState.RUNNING),
            tick(0, task=TaskId("task_2"), chat=OTHER),
        )

    await store.write(fn)

    assert await store.read(lambda tx: tx.tasks.waiting_tick(CHAT)) == tick(2)
    assert await store.read(lambda tx: tx.tasks.waiting(TASK)) == 2


async def test_ticks_come_newest_first_and_go_on_before_a_time(store: Store) -> None:
    def fn(tx: Tx) -> None:
        tx.tasks.add(TASK)
        add_ticks(tx, *(tick(minutes) for minutes in range(5)))

    await store.write(fn)

    newest = await store.read(lambda tx: tx.tasks.ticks(TASK.id, 2))
    rest = await store.read(lambda tx: tx.tasks.ticks(TASK.id, 9, newest[-1].due))
    assert newest == [tick(4), tick(3)]
    assert rest == [tick(2), tick(1), tick(0)]


async def test_only_ticks_that_wait_are_skipped(store: Store) -> None:
    def fn(tx: Tx) -> None:
        add_task(tx, 1)
        add_task(tx, 2)
        add_ticks(tx, tick(0, state=TickState.RAN), tick(1, state=TickState.RUNNING), tick(2))
        add_ticks(tx, tick(2, task=TaskId("task_2")))
        tx.tasks.skip_waiting(TASK.id, "paused")

    await store.write(fn)

    states = [
        (one.state, one.why) for one in await store.read(lambda tx: tx.tasks.ticks(TASK.id, 9))
    ]
    other = await store.read(lambda tx: tx.tasks.ticks(TaskId("task_2"), 9))
    assert states == [("skipped", "paused"), ("running", ""), ("ran", "")]
    assert [one.state for one in other] == ["due"]


async def test_a_removed_task_takes_its_ticks_along(store: Store) -> None:
    def fn(tx: Tx) -> None:
        tx.tasks.add(TASK)
        add_ticks(tx, tick(0), tick(1))
        tx.tasks.remove(TASK.id)

    await store.write(fn)

    assert await store.read(lambda tx: tx.tasks.get(TASK.id)) is None
    assert await store.read(lambda tx: tx.tasks.ticks(TASK.id, 9)) == []
    assert await store.read(lambda tx: tx.tasks.waiting_tick(CHAT)) is None


async def test_old_ticks_that_are_over_can_be_dropped(store: Store) -> None:
    def fn(tx: Tx) -> None:
        tx.tasks.add(TASK)
        add_ticks(
            tx,
            tick(0, state=TickState.RAN),
            tick(1),
            tick(2, state=TickState.RUNNING),
            tick(3, state=TickState.SKIPPED),
            tick(9, state=TickState.RAN),
        )

    await store.write(fn)
    before = START + timedelta(minutes=9)
    old = await store.read(lambda tx: tx.removals.old_ticks(before, 9))
    one = await store.read(lambda tx: tx.removals.old_ticks(before, 1))
    await store.write(lambda tx: tx.removals.drop_tick(TASK.id, START))

    left = await store.read(lambda tx: tx.tasks.ticks(TASK.id, 9))
    assert sorted(old) == [(TASK.id, tick(0).due), (TASK.id, tick(3).due)]
    assert len(one) == 1
    assert [found.due for found in reversed(left)] == [tick(n).due for n in (1, 2, 3, 9)]


# --- commands -----------------------------------------------------------------------------------


def carried(number: int, folder: str = "family", *, why: str = "") -> Carried:
    return Carried(
        id=CommandId(f"c_{number}"),
        folder=Folder(folder),
        box=Box.TASKS,
        name=f"{number}.json",
        at=START + timedelta(minutes=number),
        kind="schedule_task",
        is_ok=not why,
        why=why,
        result={"task_id": f"task-{number}", "next_run": None},
    )


async def test_the_record_of_a_command_is_kept_as_it_was_written(store: Store) -> None:
    for one in (carried(1), carried(2, why="only main may")):
        await store.write(partial(_record, one=one))
        assert await store.read(partial(_look_up, id=one.id)) == one
    assert await store.read(lambda tx: tx.commands.get(CommandId("c_9"))) is None


async def test_a_command_has_one_record(store: Store) -> None:
    await store.write(lambda tx: tx.commands.add(carried(1)))
    with pytest.raises(ConflictError):
        await store.write(lambda tx: tx.commands.add(carried(1, why="again")))
    assert await store.read(lambda tx: tx.commands.get(CommandId("c_1"))) == carried(1)


async def test_commands_are_listed_newest_first_of_one_folder_or_of_all(store: Store) -> None:
    for number, folder in enumerate(("family", "work", "family")):
        await store.write(partial(_record, one=carried(number, folder)))
    everyones = await store.read(lambda tx: tx.commands.all(None, 9))
    familys = await store.read(lambda tx: tx.commands.all(Folder("family"), 9))
    newest = await store.read(lambda tx: tx.commands.all(None, 1))
    assert [one.id for one in everyones] == ["c_2", "c_1", "c_0"]
    assert [one.id for one in familys] == ["c_2", "c_0"]
    assert [one.id for one in newest] == ["c_2"]


async def test_old_records_of_commands_can_be_dropped(store: Store) -> None:
    for number in range(4):
        await store.write(partial(_record, one=carried(number)))
    before = START + timedelta(minutes=3)
    assert await store.write(lambda tx: tx.removals.drop_commands(before, 2)) == 2
    assert await store.write(lambda tx: tx.removals.drop_commands(before, 2)) == 1
    assert await store.write(lambda tx: tx.removals.drop_commands(before, 2)) == 0
    assert [one.id for one in await store.read(lambda tx: tx.commands.all(None, 9))] == ["c_3"]


def _look_up(tx: Tx, id: CommandId) -> Carried | None:
    return tx.commands.get(id)


def _record(tx: Tx, one: Carried) -> None:
    tx.commands.add(one)
