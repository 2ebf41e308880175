"""What every feed promises to those who watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import pytest

from hallporter.domain.happening import (
    AccessChanged,
    Happening,
    Lagged,
    MessageStored,
    TypingChanged,
)
from hallporter.domain.ids import ChatId
from hallporter.ports import Feed
from hallporter.stores.feed import MemoryFeed

CHAT = ChatId("fake:family")
OTHER = ChatId("fake:work")
CAPACITY = 4
PATIENCE = 5.0  # seconds


class ClosingFeed(Feed, Protocol):
    """A feed as its owner has it."""

    def close(self) -> None: ...


# One line per feed; each must keep every promise below.
ADAPTERS: dict[str, Callable[[], ClosingFeed]] = {"memory": lambda: MemoryFeed(CAPACITY)}


@pytest.fixture(params=ADAPTERS)
def feed(request: pytest.FixtureRequest) -> ClosingFeed:
    return ADAPTERS[request.param]()


def stored(seq: int, chat: ChatId = CHAT) -> MessageStored:
    return MessageStored(chat=chat, seq=seq, is_bot=False)


async def take(events: AsyncIterator[Happening], count: int) -> list[Happening]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


async def rest(events: AsyncIterator[Happening]) -> list[Happening]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in events]


async def test_who_may_read_concerns_the_readers_of_every_chat(feed: ClosingFeed) -> None:
    async with (
        feed.subscribe(CHAT) as events,
        feed.subscribe(OTHER) as others,
        feed.subscribe(None) as all_events,
    ):
        feed.publish(AccessChanged())

        for reader in (events, others, all_events):
            assert await take(reader, 1) == [AccessChanged()]


async def test_a_reader_of_a_chat_gets_its_news_in_order_and_no_others(feed: ClosingFeed) -> None:
    async with feed.subscribe(CHAT) as events:
        feed.publish(stored(1))
        feed.publish(stored(1, OTHER))
        feed.publish(TypingChanged(chat=CHAT, typing=True))
        feed.publish(stored(2))

        assert await take(events, 3) == [
            stored(1),
            TypingChanged(chat=CHAT, typing=True),
            stored(2),
        ]


async def test_a_reader_of_the_whole_house_gets_everything(feed: ClosingFeed) -> None:
    async with feed.subscribe(None) as events:
        feed.publish(stored(1))
        feed.publish(stored(1, OTHER))

        assert await take(events, 2) == [stored(1), stored(1, OTHER)]


async def test_every_reader_gets_each_event(feed: ClosingFeed) -> None:
    async with feed.subscribe(CHAT) as one, feed.subscribe(CHAT) as two:
        feed.publish(stored(1))

        assert await take(one, 1) == await take(two, 1) == [stored(1)]


async def test_what_happened_before_is_not_told(feed: ClosingFeed) -> None:
    feed.publish(stored(1))

    async with feed.subscribe(CHAT) as events:
        feed.publish(stored(2))

        assert await take(events, 1) == [stored(2)]


async def test_a_waiting_reader_is_woken(feed: ClosingFeed) -> None:
    async with feed.subscribe(CHAT) as events, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(take(events, 1))
        await asyncio.sleep(0)
        feed.publish(stored(1))

    assert waiting.result() == [stored(1)]


async def test_a_reader_that_lags_is_told_so_once_and_then_goes_on(feed: ClosingFeed) -> None:
    async with feed.subscribe(CHAT) as slow:
        for seq in range(CAPACITY + 3):
            feed.publish(stored(seq))

        events = await take(slow, 3)

    assert events == [Lagged(), stored(CAPACITY + 1), stored(CAPACITY + 2)]


async def test_a_slow_reader_costs_the_others_nothing(feed: ClosingFeed) -> None:
    async with feed.subscribe(CHAT), feed.subscribe(CHAT) as quick:
        for seq in range(CAPACITY * 3):
            feed.publish(stored(seq))
            assert await take(quick, 1) == [stored(seq)]


async def test_closing_ends_every_stream_after_what_was_told(feed: ClosingFeed) -> None:
    async with feed.subscribe(CHAT) as one, feed.subscribe(None) as two:
        feed.publish(stored(1))
        feed.close()

        assert await rest(one) == await rest(two) == [stored(1)]
    async with feed.subscribe(CHAT) as late:
        assert await rest(late) == []


async def test_a_reader_that_left_is_forgotten(feed: ClosingFeed) -> None:
    async with feed.subscribe(CHAT):
        pass

    feed.publish(stored(1))
    async with feed.subscribe(CHAT) as events:
        feed.close()
        assert await rest(events) == []
