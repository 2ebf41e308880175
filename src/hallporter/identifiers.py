"""Fresh ids that sort by the time they were made."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallporter.ports import Clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# Crockford's digits: in the order of ASCII, and without letters that look like others.
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 26  # digits of 5 bits, for 48 bits of milliseconds and 80 of chance
_CHANCE = 80  # bits
_STEP = 40  # bits of chance between two ids of the same millisecond


class IdMaker:
    """Makes `m_01…`: each id is above all that this maker made before, whatever the clock does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        # Transactions make ids on the store's thread, everyone else on the loop.
        self._lock = Lock()

    def __call__(self, prefix: str) -> str:
        milliseconds = (self._clock.now() - _EPOCH) // _MILLISECOND
        fresh = milliseconds << _CHANCE | secrets.randbits(_CHANCE)
        with self._lock:
            if fresh <= self._last:
                fresh = self._last + 1 + secrets.randbits(_STEP)
            self._last = fresh
        return f"{prefix}_{_spelled(fresh)}"


def _spelled(number: int) -> str:
    return "".join(_DIGITS[number >> 5 * place & 31] for place in reversed(range(_LENGTH)))
