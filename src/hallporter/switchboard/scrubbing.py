"""Scrubbing: what was removed must not be found in the store's files either."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.errors import UnavailableError

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.ports import Clock, Store

log = structlog.get_logger(__name__)

_TRIES = 3
_PAUSE = timedelta(seconds=1)
_AGAIN = timedelta(hours=1)  # a long reader, a backup above all, or a full disk


class Scrubbing:
    """What a removal owes is noted in its own transaction, so that no end of the host loses it."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._not_before: datetime | None = None

    async def scrub(self) -> bool:
        """All that is owed. False: it could not be done now, and is tried again by itself."""
        async with self._one_at_a_time:
            owed = await self._store.read(lambda tx: tx.removals.owed_scrub())
            if owed is None:
                return True
            if not await self._try():
                self._not_before = self._clock.now() + _AGAIN
                return False
            await self._store.write(lambda tx: tx.removals.scrubbed(owed))
            self._not_before = None
            return True

    async def scrub_if_owed(self) -> None:
        """For those who look often: not more than once an hour."""
        if self._not_before is None or self._not_before <= self._clock.now():
            await self.scrub()

    async def _try(self) -> bool:
        why = "another program reads an older state of the database"
        for attempt in range(_TRIES):
            if attempt:
                await self._clock.sleep(_PAUSE)
            try:
                if await self._store.scrub():
                    return True
            except UnavailableError as error:
                why = error.message
                break
        log.warning("store.not_scrubbed", why=why, again_after=str(_AGAIN))
        return False
