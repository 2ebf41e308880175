"""When a task is due: cron, interval or once, in a time zone."""

from __future__ import annotations

import itertools
import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from hallporter.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTEST = timedelta(seconds=1)  # between two ticks of an interval
LONGEST = timedelta(days=3660)  # ten years
MAX_COUNTED = 10_000  # missed times of a cron expression that are counted, not estimated

_FARTHEST = 100  # years ahead that a single time may lie
_MAX_VALUE = 200  # characters
_SHOWN = 80  # characters of a refused value that are told back
_MILLISECOND = timedelta(milliseconds=1)
_FIELDS = 5  # of a cron expression: a sixth would mean seconds
_WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_NUMBER = re.compile(r"[0-9]{1,15}")
_LOCAL = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
)
_OFFSET = re.compile(r"(?:[Zz]|[+-][0-9]{2}:?(?:[0-9]{2})?)$")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTimes:
    """Times that have come: the newest of them, and how many lie before those."""

    newest: tuple[datetime, ...]
    earlier: int
    is_more: bool  # than `earlier`: counting ended there


def parse_schedule(type: str, value: str, timezone: str, now: datetime) -> Schedule:  # noqa: A002
    """Raises `InvalidRequestError`, which names the field, the value and what is allowed."""
    kind = _parse_type(type)
    zone = parse_zone(timezone)
    text = " ".join(value.split())
    if len(text) > _MAX_VALUE:
        raise _wrong(value, f"has more than {_MAX_VALUE} characters: that is no schedule")
    match kind:
        case Type.CRON:
            _check_cron(text, zone, now)
        case Type.INTERVAL:
            _check_interval(text)
        case Type.ONCE:
            _check_once(text, zone, now)
    return Schedule(type=kind, value=text, timezone=zone.key)


def parse_zone(name: str) -> ZoneInfo:
    """Raises `InvalidRequestError`."""
    try:
        zone = ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # missing, a path or rubbish, a folder
        zone = None
    # A file system that ignores letter case would let the same zone have many names.
    if zone is None or not name or zone.key != name:
        message = (
            f"{name[:_SHOWN]!r} is no time zone: write an IANA name such as 'Europe/Paris',"
            " 'America/New_York' or 'UTC'"
        )
        raise InvalidRequestError(message, field="timezone", value=name[:_SHOWN])
    return zone


def next_due(schedule: Schedule, *, anchor: datetime, after: datetime) -> datetime | None:
    """The first time later than `after`, in UTC; None when there is none. An interval's times lie
    on the grid that begins at `anchor`. Raises `InvalidRequestError` when the zone is no more."""
    match schedule.type:
        case Type.CRON:
            return next(_cron_times(schedule, after), None)
        case Type.INTERVAL:
            step = _step(schedule)
            return anchor + ((after - anchor) // step + 1) * step
        case Type.ONCE:
            at = _once(schedule)
            return at if at > after else None


def per_minute(schedule: Schedule) -> float:
    """How often an interval comes; the others come at most once."""
    return timedelta(minutes=1) / _step(schedule) if schedule.type is Type.INTERVAL else 0.0


def due_times(schedule: Schedule, *, first: datetime, until: datetime, keep: int) -> DueTimes:
    """The times of `[first, until]`, where `first` is one of them; quick however many there are:
    the newest `keep` by themselves, the others counted."""
    match schedule.type:
        case Type.CRON:
            return _cron_due(schedule, first, until, keep)
        case Type.INTERVAL:
            step = _step(schedule)
            count = (until - first) // step + 1
            kept = range(max(0, count - keep), count)
            newest = tuple(first + number * step for number in kept)
            return DueTimes(newest=newest, earlier=kept.start, is_more=False)
        case Type.ONCE:
            return DueTimes(newest=(first,), earlier=0, is_more=False)


def remark(schedule: Schedule) -> str:
    """What the asker of a single time should know: that the clocks skip it. Else empty."""
    if schedule.type is not Type.ONCE:
        return ""
    asked = datetime.fromisoformat(schedule.value)
    real = _once(schedule).astimezone(ZoneInfo(schedule.timezone)).replace(tzinfo=None)
    if asked == real:
        return ""
    return (
        f"{asked.isoformat()} does not exist in {schedule.timezone}, because the clocks go forward"
        f" then: it will be {real.isoformat()}"
    )


def _parse_type(type: str) -> Type:  # noqa: A002
    try:
        return Type(type)
    except ValueError:
        message = f"{type[:_SHOWN]!r} is no type of schedule: it is 'cron', 'interval' or 'once'"
        raise InvalidRequestError(message, field="schedule_type", value=type[:_SHOWN]) from None


# --- cron ---------------------------------------------------------------------------------------


def _check_cron(text: str, zone: ZoneInfo, now: datetime) -> None:
    if text.startswith("@") and text.casefold() not in _WORDS:
        raise _wrong(text, f"is no word that we know: there are {', '.join(_WORDS)}")
    fields = _expression(text).split()
    if len(fields) != _FIELDS:
        raise _wrong(
            text,
            f"has {len(fields)} fields: a cron expression has five, minute hour day-of-month"
            " month day-of-week, for example '0 9 * * 1-5'",
        )
    try:
        first = next(CronSim(" ".join(fields), now.astimezone(zone)), None)
    except CronSimError as error:
        raise _wrong(
            text,
            f"is no cron expression ({_lower(str(error))}): minute 0-59, hour 0-23, day of month"
            " 1-31 (one that the months have), month 1-12 or JAN-DEC, day of week 0-7 or SUN-SAT,"
            " for example '*/5 * * * *'",
        ) from None
    if first is None:
        raise _wrong(text, "never comes: no such day will be in the next 50 years")


def _expression(value: str) -> str:
    return _WORDS.get(value.casefold(), value)


def _cron_times(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """In UTC, each later than the one before."""
    zone = parse_zone(schedule.timezone)
    for time in CronSim(_expression(schedule.value), after.astimezone(zone)):
        # In the hour that comes twice, a time of day that is past comes up again.
        if (found := time.astimezone(UTC)) > after:
            yield found


def _cron_due(schedule: Schedule, first: datetime, until: datetime, keep: int) -> DueTimes:
    newest = _newest(schedule, first, until, keep)
    before = itertools.chain((first,), _cron_times(schedule, first))
    older = itertools.takewhile(lambda time: time < newest[0], before)
    earlier = sum(1 for _ in itertools.islice(older, MAX_COUNTED + 1))
    return DueTimes(newest=newest, earlier=min(earlier, MAX_COUNTED), is_more=earlier > MAX_COUNTED)


def _newest(
    schedule: Schedule, first: datetime, until: datetime, keep: int
) -> tuple[datetime, ...]:
    """Looked for in ever longer spans before `until`, so that a long gap costs little."""
    span = keep * timedelta(minutes=1)
    while True:
        since = max(first, until - span)
        times = itertools.chain((first,) if since == first else (), _cron_times(schedule, since))
        found = deque(itertools.takewhile(lambda time: time <= until, times), maxlen=keep)
        if len(found) == keep or since == first:
            return tuple(found)
        span *= 4


# --- interval and once --------------------------------------------------------------------------


def _check_interval(text: str) -> None:
    span = int(text) * _MILLISECOND if _NUMBER.fullmatch(text) else None
    if span is None or not SHORTEST <= span <= LONGEST:
        raise _wrong(
            text,
            "is no interval: write whole milliseconds, from 1000 (a second) to"
            f" {LONGEST // _MILLISECOND} (ten years), for example '3600000' for an hour",
        )


def _step(schedule: Schedule) -> timedelta:
    return int(schedule.value) * _MILLISECOND


def _check_once(text: str, zone: ZoneInfo, now: datetime) -> None:
    example = (now.astimezone(zone) + timedelta(days=1)).strftime("%Y-%m-%dT09:00:00")
    if _OFFSET.search(text) and "T" in text.upper()[: len("2026-01-01T")]:
        raise _wrong(
            text,
            f"has a zone in it: write the local time without 'Z' or offset, for example"
            f" '{example}', and name the zone beside it",
        )
    try:
        local = datetime.fromisoformat(text) if _LOCAL.fullmatch(text) else None
    except ValueError:
        local = None
    if local is None:
        raise _wrong(text, f"is no time: write a local one such as '{example}'")
    here = now.astimezone(zone)
    # Looked at first: the ends of the calendar cannot be turned into UTC.
    if local.year > here.year + _FARTHEST:
        raise _wrong(text, f"is more than {_FARTHEST} years away")
    if local.year < here.year - 1 or local.replace(tzinfo=zone) <= now:
        is_now = here.strftime("%Y-%m-%dT%H:%M:%S")
        raise _wrong(text, f"is in the past: in {zone.key} it is {is_now}")


def _once(schedule: Schedule) -> datetime:
    """A time that the clocks skip moves forward as they do; of one that comes twice, the first."""
    local = datetime.fromisoformat(schedule.value)
    return local.replace(tzinfo=parse_zone(schedule.timezone), fold=0).astimezone(UTC)


def _wrong(value: str, why: str) -> InvalidRequestError:
    shown = value[:_SHOWN]
    return InvalidRequestError(f"{shown!r} {why}", field="schedule_value", value=shown)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
