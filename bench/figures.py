"""Figures: what was measured, how often, and what was aimed at."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`n` is how many measurements stand behind `value`, which is their median where n > 1."""

    key: str
    what: str
    unit: str
    value: float
    p95: float | None = None
    n: int = 1
    at_most: float | None = None  # the goal, in the same unit

    @property
    def is_missed(self) -> bool:
        """Whether there is a goal and it was not reached."""
        return self.at_most is not None and self.value > self.at_most


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def sampled(
    key: str, what: str, unit: str, values: Sequence[float], *, at_most: float | None = None
) -> Figure:
    """A figure from repeated measurements."""
    return Figure(
        key=key,
        what=what,
        unit=unit,
        value=median(values),
        p95=percentile(values, 0.95),
        n=len(values),
        at_most=at_most,
    )
