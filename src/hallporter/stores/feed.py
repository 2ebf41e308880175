"""News of what was committed, for those who watch in the same process."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from hallporter.domain.happening import AccessChanged, Happening, Lagged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from hallporter.domain.ids import ChatId

_CAPACITY = 256  # events a reader may lag behind before it is sent back to the store


class MemoryFeed:
    """`ports.Feed` without a server: one bounded queue per reader."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._readers: dict[ChatId | None, set[_Reader]] = {}
        self._is_closed = False

    def publish(self, event: Happening) -> None:
        for topic in self._topics(event):
            for reader in self._readers.get(topic, ()):
                reader.put(event)

    def _topics(self, event: Happening) -> Collection[ChatId | None]:
        match event:
            case AccessChanged():
                return self._readers.keys()
            case Lagged():
                return (None,)
            case _:
                return (event.chat, None)

    @contextlib.asynccontextmanager
    async def subscribe(self, chat: ChatId | None) -> AsyncIterator[AsyncIterator[Happening]]:
        reader = _Reader(self._capacity)
        self._readers.setdefault(chat, set()).add(reader)
        if self._is_closed:
            reader.end()
        try:
            yield reader.events()
        finally:
            others = self._readers[chat]
            others.discard(reader)
            if not others:
                del self._readers[chat]

    def close(self) -> None:
        """End every reader's stream, so that open pages do not hold the house back."""
        self._is_closed = True
        for readers in self._readers.values():
            for reader in readers:
                reader.end()


class _Reader:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._events: deque[Happening] = deque()
        self._changed = asyncio.Event()
        self._is_ended = False

    def put(self, event: Happening) -> None:
        if len(self._events) >= self._capacity:
            self._events.clear()
            event = Lagged()
        self._events.append(event)
        self._changed.set()

    def end(self) -> None:
        self._is_ended = True
        self._changed.set()

    async def events(self) -> AsyncIterator[Happening]:
        while True:
            while self._events:
                yield self._events.popleft()
            if self._is_ended:
                return
            self._changed.clear()
            await self._changed.wait()
