"""What people say about times, read as a schedule: "in 2 minutes", "every weekday at 9:30"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeAlias

from hallporter_runner.tools import ToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A schedule as the host takes it, and the words it was read from. An empty zone is the
    chat's; `at` is the one moment of it, where there is only one."""

    type: str
    value: str
    words: str
    timezone: str = ""
    at: datetime | None = None


def plan_at_start(text: str, now: datetime) -> tuple[Plan, str] | None:
    """The time that a text begins with, and the rest of it."""
    for pattern, read in _FORMS:
        if match := re.match(rf"(?:{pattern})(?!\w|:[0-9])", text, re.IGNORECASE):
            return read(match, now), text[match.end() :]
    return None


def plan_at_end(text: str, now: datetime) -> tuple[Plan, str] | None:
    """The time that a text ends with, and what stands before."""
    for pattern, read in _FORMS:
        form = rf"(?<!\S)(?:{pattern})[\s.!?]*\Z"
        if (match := re.search(form, text, re.IGNORECASE)) and match.start():
            return read(match, now), text[: match.start()]
    return None


# --- words for numbers, spans, days and times of day --------------------------------------------

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}  # by a unit's first letter
_NUMBERS = {
    word: number
    for number, words in {
        1: "a an one",
        2: "two other second",
        3: "three",
        4: "four",
        5: "five",
        6: "six",
        7: "seven",
        8: "eight",
        9: "nine",
        10: "ten",
        15: "fifteen",
        20: "twenty",
        30: "thirty",
        45: "forty-five",
    }.items()
    for word in words.split()
}
_DAYS_OF_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PARTS_OF_DAY = {
    "morning": time(9),
    "afternoon": time(15),
    "evening": time(18),
    "night": time(21),
    "tonight": time(20),
}
_THIS_DAY = ("today", "tonight")
_FACE = {12: 0, **{hour: hour for hour in range(1, 12)}}  # of a clock without a 13
_USUAL = time(9)  # when nobody says a time of day
# A reminder that is sooner would be past when the host reads of it.
_SOONEST = timedelta(seconds=3)

_UNIT = r"(?:s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:(?:ee)?ks?)?)"
_FIGURE, _WORD = r"[0-9]{1,6}(?:[.,][0-9])?", "|".join(_NUMBERS)
_AMOUNT = rf"(?:half an? {_UNIT}|(?:{_FIGURE}\s*|(?:{_WORD})\s+){_UNIT})(?![^\W\d_])"
_SPAN = rf"(?P<span>{_AMOUNT}(?:(?:\s*,)?\s*(?:and\s+)?{_AMOUNT})*)"
_CLOCK = (
    r"(?P<clock>noon|midday|midnight|(?P<hour>[0-9]{1,2})(?:[:.](?P<minute>[0-9]{2}))?"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?)?(?:\s*o['’]?clock)?)"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?s?"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DAY = rf"today|tonight|tomorrow|(?:(?:on|next|this)\s+)?{_WEEKDAY}|(?:on\s+)?{_DATE}"
_DAYS = (
    r"(?P<days>day|morning|afternoon|evening|night|(?:week|work|working )days?|weekends?|"
    rf"{_WEEKDAY}(?:(?:\s*,\s*|\s+)(?:and\s+)?{_WEEKDAY})*)"
)


def _span(text: str) -> timedelta:
    total = 0.0
    for amount in re.findall(_AMOUNT, text.lower()):
        if amount.startswith("half"):
            count, unit = 0.5, amount.split()[-1]
        elif figure := re.match(_FIGURE, amount):
            count, unit = float(figure[0].replace(",", ".")), amount[figure.end() :].strip()
        else:
            word, unit = amount.split()
            count = _NUMBERS[word]
        total += count * _SECONDS[unit[0]]
    return timedelta(seconds=total)


def _time_of_day(said: re.Match[str], usual: time) -> time:
    match clock := (said["clock"] or "").lower():
        case "":
            return usual
        case "noon" | "midday":
            return time(12)
        case "midnight":
            return time(0)
    hour, minute, half = int(said["hour"]), int(said["minute"] or 0), said["half"]
    try:
        if not half:
            return time(hour, minute)
        on_the_face = time(hour, minute).replace(hour=_FACE[hour])
        return on_the_face if half in "aA" else on_the_face.replace(hour=_FACE[hour] + 12)
    except (ValueError, LookupError):
        raise ToolError(f"{clock} is no time of day: say it like 9, 9:30, 18:05 or 6 pm.") from None


# --- once ---------------------------------------------------------------------------------------


def _after(match: re.Match[str], now: datetime) -> Plan:
    try:
        at = (now + max(_span(match["span"]), _SOONEST)).astimezone(UTC)
    except OverflowError:
        raise ToolError(f"{match['span']} is too far away for me.") from None
    # In UTC, because it is a stretch of time and not a place on anyone's clock.
    return _once(at.replace(tzinfo=None), match[0], timezone="UTC", at=at)


def _on_day(match: re.Match[str], now: datetime) -> Plan:
    said = (match["day"] or match.groupdict().get("day_after") or "").lower()
    usual = _PARTS_OF_DAY.get(said, _USUAL)
    is_timed = bool(match.groupdict().get("clock"))
    if not is_timed and said in _THIS_DAY and usual <= now.time():
        usual = _next_hour(now)
    clock = _time_of_day(match, usual) if is_timed else usual
    local = datetime.combine(_date(said, clock, now), clock)
    return _once(local, match[0], at=local.replace(tzinfo=now.tzinfo))


def _next_hour(now: datetime) -> time:
    """For who says no time of day when the usual one is past."""
    ahead = now + timedelta(hours=1)
    if ahead.date() != now.date():
        raise ToolError("Today is almost over: say when, like `in 20 minutes` or `at 23:45`.")
    return time(ahead.hour)


def _date(said: str, clock: time, now: datetime) -> date:
    """The day that was named; without one, or on a weekday's name, the next that is still ahead."""
    today = now.date()
    *_, word = said.split() or [""]
    is_past = clock <= now.time()
    if not word:
        return today + timedelta(days=is_past)
    if word in _THIS_DAY:
        return today
    if word == "tomorrow":
        return today + timedelta(days=1)
    if word[0].isdigit():
        try:
            return date.fromisoformat(word)
        except ValueError:
            raise ToolError(f"{word} is no day of the calendar.") from None
    days = (_DAYS_OF_WEEK.index(word[:3]) - today.weekday()) % 7
    is_over = is_past or said.startswith("next")
    return today + timedelta(days=days or (7 if is_over else 0))


def _once(local: datetime, words: str, *, at: datetime, timezone: str = "") -> Plan:
    value = local.isoformat(timespec="seconds")
    return Plan(type="once", value=value, words=_tidy(words), timezone=timezone, at=at)


# --- again and again ----------------------------------------------------------------------------


def _each(match: re.Match[str], _now: datetime) -> Plan:
    milliseconds = int(_span(match["span"]) / timedelta(milliseconds=1))
    return Plan(type="interval", value=str(milliseconds), words=_tidy(match[0]))


def _each_unit(match: re.Match[str], _now: datetime) -> Plan:
    unit = (match["unit"] or "hour")[0].lower()
    return Plan(type="interval", value=str(_SECONDS[unit] * 1000), words=_tidy(match[0]))


def _on_days(match: re.Match[str], _now: datetime) -> Plan:
    said = (match.groupdict().get("days") or "day").lower()
    clock = _time_of_day(match, _PARTS_OF_DAY.get(said, _USUAL))
    return _cron(clock, f"* * {_cron_days(said)}", match[0])


def _monthly(match: re.Match[str], _now: datetime) -> Plan:
    return _cron(_time_of_day(match, _USUAL), f"{int(match['date'] or 1)} * *", match[0])


def _cron(clock: time, days: str, words: str) -> Plan:
    return Plan(type="cron", value=f"{clock.minute} {clock.hour} {days}", words=_tidy(words))


def _cron_days(said: str) -> str:
    if said == "day" or said in _PARTS_OF_DAY:
        return "*"
    if said.startswith("weekend"):
        return "0,6"
    if said.startswith(("weekday", "work")):
        return "1-5"
    named = re.findall(_WEEKDAY, said)
    numbers = sorted({(_DAYS_OF_WEEK.index(day[:3]) + 1) % 7 for day in named})
    return ",".join(map(str, numbers))


def _tidy(words: str) -> str:
    return " ".join(words.split()).rstrip(" .!?")


Reader: TypeAlias = Callable[[re.Match[str], datetime], Plan]
_EVERY = r"(?:every|each)\s+"
_AT = rf"(?:\s*,?\s*(?:at|@)\s*{_CLOCK})?"
# The first that fits is meant, so what says more stands before what says less.
_FORMS: tuple[tuple[str, Reader], ...] = (
    (rf"at\s+{_CLOCK}\s+{_EVERY}{_DAYS}", _on_days),
    (rf"(?:{_EVERY}{_DAYS}|daily|every\s*day){_AT}", _on_days),
    (
        rf"(?:{_EVERY}month|monthly)(?:\s+on\s+the\s+(?P<date>[0-9]{{1,2}})(?:st|nd|rd|th)?)?{_AT}",
        _monthly,
    ),
    (rf"{_EVERY}{_SPAN}", _each),
    (rf"{_EVERY}(?P<unit>second|minute|hour|week)|hourly", _each_unit),
    (rf"in\s+{_SPAN}", _after),
    (rf"(?P<day>{_DAY})\s*,?\s+(?:at|@)\s*{_CLOCK}", _on_day),
    (rf"(?P<day>)(?:at|@)\s*{_CLOCK}(?:\s+(?P<day_after>{_DAY}))?", _on_day),
    (rf"(?P<day>{_DAY})", _on_day),
)
