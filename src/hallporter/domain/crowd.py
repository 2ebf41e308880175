"""Ticks that come every few seconds while earlier ones still wait: two rows tell of them all."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.task import Tick

CROWDED = "earlier ticks of this task still wait"
_CLOSE = timedelta(minutes=1)  # what comes this seldom can have its rows
_BETWEEN = re.compile(rf"{CROWDED}; so it was for ([0-9,]+) more")


def folded(tick: Tick, newest: Sequence[Tick]) -> Tick | None:
    """As it takes the place of the newest row, counting it; None when it needs a row of its own.
    `newest` are the two newest rows of its task, the newest first."""
    if tick.why != CROWDED or len(newest) < 2:  # noqa: PLR2004  the first and the last of a crowd
        return None
    last, first = newest
    if not (_is_crowded(last) and _is_crowded(first)):
        return None
    if not timedelta(0) < tick.due - last.due < _CLOSE:
        return None
    since = first.due.strftime("%Y-%m-%d %H:%M:%S UTC")
    return replace(
        tick, why=f"{CROWDED}; so it was for {_between(last) + 1:,} more since that of {since}"
    )


def _is_crowded(tick: Tick) -> bool:
    return tick.why.startswith(CROWDED)


def _between(tick: Tick) -> int:
    told = _BETWEEN.match(tick.why)
    return 0 if told is None else int(told[1].replace(",", ""))
