"""Sending what is in the outbox: in order, once, until it has an end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.chat import ChatSeen
from hallporter.domain.enclosure import Enclosure
from hallporter.domain.ids import ChatId, EnclosureId, Folder, MessageId
from hallporter.domain.outbox import Delivery as State
from hallporter.domain.outbox import Outgoing, Part
from hallporter.ports import Store
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.sqlite import open_store
from hallporter.switchboard.delivery import Delivery
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import START, FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.books import Tx

CHAT = ChatId("fake:family")
OTHER = ChatId("fake:work")
PATIENCE = 5.0  # seconds
LONG = timedelta(minutes=2)  # more than any pause between two sends


class StrangeChannel(FakeChannel):
    """A network whose library breaks on words that stand in `breaks`, as often as they stand there,
    and that takes its time over words in `slow`."""

    def __init__(self, *, takes_message_id: bool = True) -> None:
        super().__init__(takes_message_id=takes_message_id)
        self.breaks: list[str] = []
        self.slow: dict[str, asyncio.Event] = {}
        self.tries: list[str] = []
        self.tried = asyncio.Event()

    async def send(
        self, chat: ChatId, body: str, message_id: str, files: Sequence[Enclosure] = ()
    ) -> None:
        self.tries.append(body)
        self.tried.set()
        if body in self.breaks:
            self.breaks.remove(body)
            raise ZeroDivisionError("inside the library")
        if body in self.slow:
            await self.slow[body].wait()
        await super().send(chat, body, message_id, files)


class Desk:
    """Delivery at work on a real outbox."""

    def __init__(self, store: Store, channel: StrangeChannel, clock: FakeClock) -> None:
        self.store = store
        self.channel = channel
        self.clock = clock
        self.feed = MemoryFeed()
        self.delivery = Delivery(
            store=store, channel_of=self._channel_of, feed=self.feed, clock=clock
        )

    def _channel_of(self, chat: ChatId) -> StrangeChannel | None:
        return self.channel if self.channel.owns(chat) else None

    async def put(
        self, *bodies: str, chat: ChatId = CHAT, files: tuple[Enclosure, ...] = ()
    ) -> MessageId:
        """One message, in as many parts as there are bodies; files go with the last of them."""
        about = MessageId(f"m_{bodies[0]}")

        def fn(tx: Tx) -> None:
            tx.chats.seen(ChatSeen(chat=chat, channel="fake", at=START))
            parts = tuple(
                Part(
                    body=body,
                    message_id=f"{about}.{body}",
                    files=files if body == bodies[-1] else (),
                )
                for body in bodies
            )
            tx.outbox.put(
                Outgoing(number=0, key=about, chat=chat, message=about, at=START, parts=parts)
            )
            tx.after_commit(lambda: self.delivery.wake(chat))

        await self.store.write(fn)
        return about

    async def row(self, about: MessageId) -> Outgoing:
        return (await self.store.read(lambda tx: tx.outbox.of_messages([about])))[0]

    async def ended(self, about: MessageId) -> Outgoing:
        async with asyncio.timeout(PATIENCE), self.feed.subscribe(None) as events:
            while (row := await self.row(about)).state is State.PENDING:
                await anext(events)
        return row

    async def tried(self, count: int) -> None:
        """The network was tried so often, and the pause after it has begun."""
        async with asyncio.timeout(PATIENCE):
            while len(self.channel.tries) < count:
                self.channel.tried.clear()
                await self.channel.tried.wait()
        for _ in range(10):
            await self.store.write(lambda tx: tx.outbox.counts())

    def sent(self, chat: ChatId = CHAT) -> list[str]:
        return [body for where, body, _ in self.channel.sent if where == chat]


@contextlib.asynccontextmanager
async def at_work(
    folder: Path, channel: StrangeChannel | None = None, clock: FakeClock | None = None
) -> AsyncIterator[Desk]:
    clock = clock or FakeClock()
    async with open_store(folder / "hallporter.db", clock) as store, asyncio.TaskGroup() as tasks:
        desk = Desk(store, channel or StrangeChannel(), clock)
        serving = tasks.create_task(desk.delivery.serve())
        yield desk
        serving.cancel()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with at_work(tmp_path) as opened:
        yield opened


async def test_rows_of_a_chat_are_sent_in_order_under_our_ids(desk: Desk) -> None:
    rows = [await desk.put(f"row {number}") for number in range(30)]

    assert (await desk.ended(rows[-1])).state is State.SENT
    assert desk.sent() == [f"row {number}" for number in range(30)]
    assert desk.channel.sent[0][2] == "m_row 0.row 0"


async def test_a_network_that_is_away_is_waited_for_without_counting(desk: Desk) -> None:
    desk.channel.is_down = True
    about = await desk.put("hello")
    for count in range(1, 21):
        await desk.tried(count)
        desk.clock.advance(LONG)
    desk.channel.is_down = False
    await desk.tried(21)
    desk.clock.advance(LONG)

    row = await desk.ended(about)

    assert (row.state, row.parts[0].attempts) == (State.SENT, 0)
    assert desk.sent() == ["hello"]


async def test_what_the_network_refuses_is_undeliverable_and_the_next_goes_on(desk: Desk) -> None:
    desk.channel.refuses = "bad"
    bad = await desk.put("bad words")
    good = await desk.put("good words")

    assert (await desk.ended(good)).state is State.SENT
    row = await desk.row(bad)
    assert (row.state, row.why) == (State.UNDELIVERABLE, "the network refused it")


async def test_an_unexpected_error_is_tried_five_times_and_the_next_goes_on(desk: Desk) -> None:
    desk.channel.breaks = ["odd"] * 5
    odd = await desk.put("odd")
    good = await desk.put("good")
    for count in range(1, 5):
        await desk.tried(count)
        desk.clock.advance(LONG)

    assert (await desk.ended(good)).state is State.SENT
    row = await desk.row(odd)
    assert row.state is State.UNDELIVERABLE
    assert row.why == "ZeroDivisionError: inside the library"
    assert desk.channel.tries == ["odd"] * 5 + ["good"]


async def test_an_unexpected_error_that_passes_is_forgiven(desk: Desk) -> None:
    desk.channel.breaks = ["odd"] * 4
    about = await desk.put("odd")
    for count in range(1, 5):
        await desk.tried(count)
        desk.clock.advance(LONG)

    assert (await desk.ended(about)).state is State.SENT


async def test_a_chat_that_no_channel_serves_gets_nothing_and_the_row_says_why(desk: Desk) -> None:
    about = await desk.put("hello", chat=ChatId("gone:family"))

    row = await desk.ended(about)

    assert (row.state, row.why) == (State.UNDELIVERABLE, "no channel serves this chat")


async def test_chats_do_not_wait_for_one_another(desk: Desk) -> None:
    desk.channel.slow["slow"] = asyncio.Event()
    slow = await desk.put("slow")
    await desk.tried(1)
    quick = await desk.put("quick", chat=OTHER)

    assert (await desk.ended(quick)).state is State.SENT
    assert (await desk.row(slow)).state is State.PENDING
    desk.channel.slow["slow"].set()
    assert (await desk.ended(slow)).state is State.SENT


async def test_a_row_that_waits_holds_back_those_behind_it_in_its_chat(desk: Desk) -> None:
    desk.channel.slow["one"] = asyncio.Event()
    await desk.put("one")
    await desk.tried(1)
    last = await desk.put("two")
    await desk.tried(1)
    assert desk.sent() == []

    desk.channel.slow["one"].set()

    await desk.ended(last)
    assert desk.sent() == ["one", "two"]


async def test_parts_go_in_order_and_only_once_after_a_restart(tmp_path: Path) -> None:
    channel = StrangeChannel()
    channel.slow["part 2"] = asyncio.Event()
    async with at_work(tmp_path, channel) as desk:
        about = await desk.put("part 1", "part 2", "part 3")
        await desk.tried(2)

    channel.slow.clear()
    async with at_work(tmp_path, channel) as desk:
        assert (await desk.ended(about)).state is State.SENT

    assert desk.sent() == ["part 1", "part 2", "part 3"]
    assert channel.tries.count("part 1") == 1


async def test_a_part_takes_its_files_along_also_after_a_restart(tmp_path: Path) -> None:
    file = Enclosure(
        id=EnclosureId("f_1"), folder=Folder("family"), name="a.txt", size=1, type="text/plain"
    )
    channel = StrangeChannel()
    channel.is_down = True
    async with at_work(tmp_path, channel) as desk:
        about = await desk.put("words", "more words", files=(file,))
        await desk.tried(1)

    channel.is_down = False
    async with at_work(tmp_path, channel) as desk:
        await desk.ended(about)

    assert channel.files == {f"{about}.words": (), f"{about}.more words": (file,)}


async def test_a_part_that_is_refused_ends_the_whole_message(desk: Desk) -> None:
    desk.channel.refuses = "part 2"
    about = await desk.put("part 1", "part 2", "part 3")

    assert (await desk.ended(about)).state is State.UNDELIVERABLE
    assert desk.sent() == ["part 1"]


async def test_what_was_pending_at_the_end_is_sent_at_the_next_start(tmp_path: Path) -> None:
    channel = StrangeChannel()
    channel.is_down = True
    async with at_work(tmp_path, channel) as desk:
        await desk.put("one")
        await desk.put("two", chat=OTHER)
        await desk.tried(2)

    channel.is_down = False
    async with at_work(tmp_path, channel) as desk:
        for about in ("m_one", "m_two"):
            assert (await desk.ended(MessageId(about))).state is State.SENT
    assert sorted(body for _, body, _ in channel.sent) == ["one", "two"]


async def test_a_send_cut_short_is_repeated_under_the_same_id_and_shown_once(
    tmp_path: Path,
) -> None:
    channel = StrangeChannel()
    async with at_work(tmp_path, channel) as desk:
        about = await desk.put("hello")
        await desk.ended(about)
        row = await desk.row(about)
        # As if the host had ended between the send and the note of it.
        await desk.store.write(lambda tx: tx.outbox.finish(row.number, State.PENDING, ""))

    async with at_work(tmp_path, channel) as desk:
        await desk.ended(about)

    assert channel.tries == ["hello", "hello"]
    assert desk.sent() == ["hello"]


# --- networks that do not know a repeat ----------------------------------------------------------


async def test_without_message_ids_a_doubtful_send_is_repeated_once_and_says_so(
    tmp_path: Path,
) -> None:
    channel = StrangeChannel(takes_message_id=False)
    channel.slow["hello"] = asyncio.Event()
    async with at_work(tmp_path, channel) as desk:
        about = await desk.put("hello")
        await desk.tried(1)

    async with at_work(tmp_path, channel) as desk:
        assert (await desk.ended(about)).state is State.SENT

    assert desk.sent() == ["(sent again after an interruption) hello"]


async def test_without_message_ids_a_second_doubtful_send_is_undeliverable(
    tmp_path: Path,
) -> None:
    channel = StrangeChannel(takes_message_id=False)
    again = "(sent again after an interruption) hello"
    channel.slow = {"hello": asyncio.Event(), again: asyncio.Event()}
    async with at_work(tmp_path, channel) as desk:
        about = await desk.put("hello")
        await desk.tried(1)
    async with at_work(tmp_path, channel) as desk:
        await desk.tried(2)

    async with at_work(tmp_path, channel) as desk:
        row = await desk.ended(about)

    assert row.state is State.UNDELIVERABLE
    assert "not known whether the network has it" in row.why
    assert channel.tries == ["hello", again]


async def test_without_message_ids_a_network_that_was_away_leaves_no_doubt(
    tmp_path: Path,
) -> None:
    channel = StrangeChannel(takes_message_id=False)
    channel.is_down = True
    async with at_work(tmp_path, channel) as desk:
        about = await desk.put("hello")
        await desk.tried(1)
    for restart in (2, 3):
        async with at_work(tmp_path, channel) as desk:
            await desk.tried(restart)
    channel.is_down = False

    async with at_work(tmp_path, channel) as desk:
        assert (await desk.ended(about)).state is State.SENT

    assert desk.sent() == ["hello"]


async def test_without_message_ids_parts_that_are_sent_stay_sent(tmp_path: Path) -> None:
    channel = StrangeChannel(takes_message_id=False)
    channel.slow["part 2"] = asyncio.Event()
    async with at_work(tmp_path, channel) as desk:
        about = await desk.put("part 1", "part 2")
        await desk.tried(2)

    async with at_work(tmp_path, channel) as desk:
        row = await desk.ended(about)

    assert desk.sent() == ["part 1", "(sent again after an interruption) part 2"]
    assert row.parts[0].state is State.SENT


async def test_without_message_ids_an_unexpected_error_is_repeated_once_and_marked(
    tmp_path: Path,
) -> None:
    channel = StrangeChannel(takes_message_id=False)
    again = "(sent again after an interruption) odd"
    channel.breaks = ["odd", again]
    async with at_work(tmp_path, channel) as desk:
        odd = await desk.put("odd")
        good = await desk.put("good")
        await desk.tried(1)
        desk.clock.advance(LONG)

        assert (await desk.ended(good)).state is State.SENT
        row = await desk.row(odd)

    assert row.state is State.UNDELIVERABLE
    assert channel.tries == ["odd", again, "good"]
