"""The porter's rounds: every minute, and when something fails, a look at what needs someone."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.errors import UnavailableError
from hallporter.domain.happening import Delivered, Lagged, TurnChanged
from hallporter.domain.outbox import Delivery

if TYPE_CHECKING:
    from hallporter.domain.happening import Happening
    from hallporter.ports import Clock, Feed
    from hallporter.switchboard.notices import Notices
    from hallporter.switchboard.retention import Sweep

log = structlog.get_logger(__name__)

_EVERY = timedelta(minutes=1)


class Rounds:
    """Notices and the nightly sweep, for as long as the host runs."""

    def __init__(self, *, notices: Notices, sweep: Sweep, feed: Feed, clock: Clock) -> None:
        self._notices = notices
        self._sweep = sweep
        self._feed = feed
        self._clock = clock

    async def serve(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._heed_news(), name="rounds:news")
            while True:
                await self._look()
                await self._clock.sleep(_EVERY)

    async def _look(self) -> None:
        try:
            await self._notices.look()
            await self._sweep.run_if_due()
        except (UnavailableError, OSError) as error:
            log.warning("rounds.paused", error=str(error))

    async def _heed_news(self) -> None:
        async with self._feed.subscribe(None) as events:
            async for event in events:
                if is_alarming(event):
                    await self._look()


def is_alarming(event: Happening) -> bool:
    """Whether it may need the operator now; the end of trouble can wait for the next round."""
    match event:
        case TurnChanged(state="failed") | Delivered(state=Delivery.UNDELIVERABLE) | Lagged():
            return True
        case _:
            return False
