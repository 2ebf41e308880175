"""What can be told of a schedule inside the sandbox; whether it lies ahead, the host knows."""

from __future__ import annotations

import re
from datetime import datetime

TYPES = ("cron", "interval", "once")
_CRON_FIELDS = 5
_CRON_WORDS = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")
_NUMBER = re.compile(r"[0-9]{1,15}")
_SHORTEST = 1000  # milliseconds of an interval


def trouble_with(schedule_type: str, value: str) -> str:
    """Why the value cannot be one of its type, in words that say what can; empty when it can."""
    match schedule_type:
        case "cron":
            return _trouble_with_cron(value.strip())
        case "interval":
            return _trouble_with_interval(value.strip())
        case "once":
            return _trouble_with_once(value.strip())
    return f"schedule_type must be one of {', '.join(TYPES)}, not {schedule_type!r}"


def _trouble_with_cron(value: str) -> str:
    if value.lower() in _CRON_WORDS or (
        not value.startswith("@") and len(value.split()) == _CRON_FIELDS
    ):
        return ""
    return (
        f"{value!r} is no cron expression: it has five fields (minute hour day month weekday),"
        f" as in '0 9 * * *', or is one of {', '.join(_CRON_WORDS)}"
    )


def _trouble_with_interval(value: str) -> str:
    if _NUMBER.fullmatch(value) and int(value) >= _SHORTEST:
        return ""
    return (
        f"{value!r} is no interval: it is a whole number of milliseconds from {_SHORTEST} up, as in"
        " '300000' for five minutes"
    )


def _trouble_with_once(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = None
    if moment is None or ":" not in value:
        return f"{value!r} is no date and time: write it as in '2026-02-23T15:30:00'"
    if moment.tzinfo is not None:
        return (
            f"{value!r} has an offset: write the local time alone, as in"
            f" '{moment.replace(tzinfo=None).isoformat()}', and its zone in timezone"
        )
    return ""
