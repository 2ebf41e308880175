"""How often someone may guess: failures are counted per address and in all, for a while."""

from __future__ import annotations

import math
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING

from hallporter.domain.errors import RateLimitedError

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.ports import Clock

_WHILE = timedelta(minutes=15)
_FROM_ONE = 10  # failures from one address
_IN_ALL = 100


class Attempts:
    """In memory: a restart forgives, and at most `_IN_ALL` failures are ever remembered."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._failures: deque[tuple[datetime, str]] = deque()

    def check(self, address: str) -> None:
        """Raises `RateLimitedError` while there were too many."""
        now = self._clock.now()
        while self._failures and now - self._failures[0][0] >= _WHILE:
            self._failures.popleft()
        from_here = [at for at, whence in self._failures if whence == address]
        for failures, limit in (
            (from_here, _FROM_ONE),
            ([at for at, _ in self._failures], _IN_ALL),
        ):
            if len(failures) >= limit:
                wait = failures[-limit] + _WHILE - now
                seconds = max(1, math.ceil(wait.total_seconds()))
                message = f"too many failed attempts: try again in {_in_words(seconds)}"
                raise RateLimitedError(message, retry_after=seconds)

    def failed(self, address: str) -> None:
        self._failures.append((self._clock.now(), address))


def _in_words(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    return "a minute" if minutes == 1 else f"{minutes} minutes"
