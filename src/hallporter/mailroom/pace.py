"""How fast a folder's requests are taken: above that they wait, and none is dropped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallporter.ports import Clock

_TOGETHER = 10  # requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many at once, and so many more each second."""

    per_second: float = 50
    burst: int = 200


class Pace:
    """One folder's allowance; a clock that is set back costs nobody anything."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._left = float(rate.burst)
        self._at = clock.now()

    def left(self) -> int:
        """How many may be taken now."""
        now = self._clock.now()
        passed = max(0.0, (now - self._at).total_seconds())
        self._at = now
        self._left = min(self._rate.burst, self._left + passed * self._rate.per_second)
        return int(self._left)

    def take(self, count: int) -> None:
        self._left -= count

    def wait(self) -> timedelta:
        """Until some more may be taken: to look for each single one would be dear."""
        wanted = min(_TOGETHER, self._rate.burst)
        return timedelta(seconds=max(0.001, (wanted - self._left) / self._rate.per_second))
