"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

START = datetime(2026, 2, 19, 10, 0, tzinfo=UTC)


class FakeClock:
    """`ports.Clock`: sleepers wake when `advance` has passed their time."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now
        self._count = itertools.count()
        self._sleepers: list[tuple[datetime, int, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep(self, delay: timedelta) -> None:
        awake = asyncio.Event()
        heapq.heappush(self._sleepers, (self._now + delay, next(self._count), awake))
        if delay <= timedelta(0):
            awake.set()
        await awake.wait()

    def advance(self, delta: timedelta) -> None:
        self._now += delta
        while self._sleepers and self._sleepers[0][0] <= self._now:
            heapq.heappop(self._sleepers)[2].set()

    def tick(self) -> None:
        """A moment later, so that two things do not happen at once."""
        self.advance(timedelta(milliseconds=1))
