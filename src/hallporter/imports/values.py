"""Other programs' columns as our values; what makes no sense is None, never an error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_YEAR = 9000
_LONGEST = 1e15  # milliseconds


def text(value: object) -> str | None:
    """Any scalar as text that a database and JSON can hold."""
    match value:
        case None:
            return None
        case bytes():
            words = value.decode("utf-8", "replace")
        case str():
            words = value.encode("utf-8", "replace").decode("utf-8")
        case _:
            words = str(value)
    return words.replace("\x00", "")


def flag(value: object, *, otherwise: bool) -> bool:
    """As SQLite keeps it; NULL and anything strange is `otherwise`."""
    if isinstance(value, str) and value.strip() in ("0", "1"):
        return value.strip() == "1"
    return bool(value) if isinstance(value, int | float) else otherwise


def moment(value: object) -> datetime | None:
    """ISO 8601; without an offset it is UTC."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value.strip())
        found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        found = found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if _EPOCH.year <= found.year < _LAST_YEAR else None


def span(value: object) -> timedelta | None:
    """From milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST:
        return None
    return timedelta(milliseconds=value)


def microseconds(value: object) -> int | None:
    """The same moment as a number: sorts in SQL."""
    found = moment(value)
    return None if found is None else (found - _EPOCH) // _MICROSECOND


def from_microseconds(number: int) -> datetime:
    return _EPOCH + number * _MICROSECOND
