"""Times as the demo agent tells them: in the chat's zone, and in words a person would use."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallporter_runner.demo.conversation import Talk

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))  # in seconds


def now_of(talk: Talk) -> datetime:
    """Now, in the chat's zone; the box's own clock where the host did not tell."""
    return talk.now or datetime.now().astimezone()


def describe_moment(at: datetime, talk: Talk) -> str:
    """When that is, as seen from this chat."""
    now = now_of(talk)
    local = at.astimezone(_zone(talk, now))
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    zone = f" ({talk.timezone})" if talk.timezone else ""
    match (local.date() - now.date()).days:
        case 0:
            return f"today at {clock}{zone}"
        case 1:
            return f"tomorrow at {clock}{zone}"
    return f"{local:%A}, {local.day} {local:%B %Y} at {clock}{zone}"


def describe_span(span: timedelta) -> str:
    """A length of time in the largest unit that measures it without a rest."""
    seconds = span.total_seconds()
    for unit, length in _UNITS:
        if seconds >= length and seconds % length == 0:
            return unit if seconds == length else f"{seconds / length:.0f} {unit}s"
    return f"{seconds:g} seconds"


def _zone(talk: Talk, now: datetime) -> tzinfo | None:
    # A later moment may lie beyond a change of the clocks. Only those who ask pay for the module.
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    try:
        return ZoneInfo(talk.timezone)
    except (LookupError, ValueError, OSError):  # the box may not carry the zones
        return now.tzinfo
