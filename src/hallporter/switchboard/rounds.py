"""The porter's rounds: every minute, and when something fails, a look at what needs someone."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.errors import HallporterError
from hallporter.domain.happening import Delivered, Lagged, TurnChanged
from hallporter.domain.outbox import Delivery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hallporter.domain.happening import Happening
    from hallporter.ports import Clock, Feed

log = structlog.get_logger(__name__)

_EVERY = timedelta(minutes=1)


class Rounds:
    """Notices and the nightly sweep, for as long as the host runs; both know what is due."""

    def __init__(
        self,
        *,
        look: Callable[[], Awaitable[None]],
        sweep: Callable[[], Awaitable[object]],
        feed: Feed,
        clock: Clock,
    ) -> None:
        self._look = look
        self._sweep = sweep
        self._feed = feed
        self._clock = clock

    async def serve(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._heed_news(), name="rounds:news")
            while True:
                await _try(self._look)
                await _try(self._sweep)
                await self._clock.sleep(_EVERY)

    async def _heed_news(self) -> None:
        async with self._feed.subscribe(None) as events:
            async for event in events:
                if is_alarming(event):
                    await _try(self._look)


async def _try(work: Callable[[], Awaitable[object]]) -> None:
    """What cannot be done now, for want of room above all, is done a round later."""
    try:
        await work()
    except (HallporterError, OSError) as error:
        log.warning("rounds.paused", error=str(error))


def is_alarming(event: Happening) -> bool:
    """Whether it may need the operator now; the end of trouble can wait for the next round."""
    match event:
        case TurnChanged(state="failed") | Delivered(state=Delivery.UNDELIVERABLE) | Lagged():
            return True
        case _:
            return False
