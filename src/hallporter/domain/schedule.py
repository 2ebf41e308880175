"""When a task is due: cron, interval or once, in a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """The three kinds of schedule."""

    CRON = "cron"
    INTERVAL = "interval"
    ONCE = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """As it was asked for; checked by `parse_schedule`."""

    type: Type
    value: str
    timezone: str
