"""How values of the domain look in a column."""

from __future__ import annotations

from datetime import UTC, datetime


def time_in(moment: datetime | None) -> str | None:
    """Fixed width in UTC, so that text order is time order."""
    if moment is None:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_out(text: str) -> datetime:
    """The moment that a column holds."""
    return datetime.fromisoformat(text)


def maybe_time_out(text: str | None) -> datetime | None:
    """The same for a column that may be empty."""
    return None if text is None else time_out(text)
