"""What was removed for good: how much of what, never what it said."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from hallporter.domain.ids import ChatId

_NOTHING: Mapping[str, int] = MappingProxyType({})


class Reason(StrEnum):
    """Who asked for it."""

    FORGET = "forget"  # the operator, for one chat
    RETENTION = "retention"  # the settings, every night


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """`counts` is by kind: messages, turns, files and so on."""

    at: datetime
    reason: Reason
    chat: ChatId | None = None
    counts: Mapping[str, int] = field(default_factory=lambda: _NOTHING)

    @property
    def is_empty(self) -> bool:
        return not any(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A forgetting whose rows are gone and whose files are to follow; `head` is the chat's last
    number then, `purges` whether the group goes too."""

    chat: ChatId
    head: int
    purges: bool
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long things are kept; None is for ever. `hour` is when the sweep runs, local time."""

    messages: timedelta | None
    logs: timedelta | None
    media: timedelta | None = None  # files of messages, whose words may stay
    hour: int
    zone: tzinfo

    def is_due(self, now: datetime, last: datetime | None) -> bool:
        """Once a day, at the hour or as soon after it as someone is there to do it."""
        here = now.astimezone(self.zone)
        today = here.replace(hour=self.hour, minute=0, second=0, microsecond=0)
        due = today if here >= today else today - timedelta(days=1)
        return last is None or last < due


def together(counts: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    return {what: counts.get(what, 0) + more.get(what, 0) for what in {**counts, **more}}


def told(counts: Mapping[str, int]) -> str:
    """For people: `3 messages, 2 turns`."""
    found = [f"{count} {_singular(what, count)}" for what, count in counts.items() if count]
    return ", ".join(found) or "nothing"


def _singular(what: str, count: int) -> str:
    words = what.replace("_", " ")
    if count != 1:
        return words
    if words.endswith("ies"):
        return f"{words.removesuffix('ies')}y"
    return words.removesuffix("s")
