"""What a value may be, in TOML and as the text of a variable alike."""

from __future__ import annotations

import ipaddress
import json
import math
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.extra_mount import ExtraMount, check_mounts, parse_mount
from hallporter.domain.group import check_senders

_WHOLE = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_DURATION = re.compile(rf"({_NUMBER.pattern})\s*([smhd]?)")
_SIZE = re.compile(r"([0-9]{1,19})\s*([kmg]?)")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")

_UNITS = {
    "": timedelta(seconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_MULTIPLES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}  # bytes
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST = timedelta(days=365)
_LARGEST = (1 << 63) - 1  # bytes; what a kernel can count
_NO_LIMIT = ("none", 0, "0")


class NotAllowedError(ValueError):
    """The value is not of its kind; a message, if any, says more than the kind does."""


def plain(value: object) -> str:
    """A value as people write it, without the quotes of a text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class Kind:
    """`allowed` completes "use …"; `read` raises `NotAllowedError`, and `spell` is its reverse."""

    allowed: str
    read: Callable[[object], Any]
    spell: Callable[[Any], str] = plain


def one_line(longest: int) -> Kind:
    """Words for people."""

    def read(value: object) -> str:
        words = _text(value).strip()
        if not 0 < len(words) <= longest or not words.isprintable():
            raise NotAllowedError
        return words

    return Kind(f"one line of 1 to {longest} characters", read)


def choice(*words: str, any_case: bool = False) -> Kind:
    """One of a few words."""

    def read(value: object) -> str:
        word = _text(value).lower() if any_case else _text(value)
        if word not in words:
            raise NotAllowedError
        return word

    return Kind(f"one of {', '.join(words)}", read)


def yes_or_no() -> Kind:
    """A claim."""

    def read(value: object) -> bool:
        if isinstance(value, bool):
            return value
        word = _text(value).lower()
        if word not in ("true", "false"):
            raise NotAllowedError
        return word == "true"

    return Kind("true or false", read)


def only_true() -> Kind:
    """A claim in the documents' way: exactly `true`, and anything else is no."""
    return Kind("true or anything else", lambda value: value == "true")


def whole(low: int, high: int) -> Kind:
    """A count."""

    def read(value: object) -> int:
        number = _whole(value)
        if not low <= number <= high:
            raise NotAllowedError
        return number

    return Kind(f"a whole number from {low} to {high}", read)


def duration(least: timedelta) -> Kind:
    """A stretch of time; a number without a unit is seconds."""

    def read(value: object) -> timedelta:
        match = _DURATION.fullmatch(_number_as_text(value))
        if match is None:
            raise NotAllowedError
        amount, unit = float(match[1]), _UNITS[match[2]]
        # Compared as numbers: not every one of them fits into a timedelta.
        if not least / unit <= amount <= _LONGEST / unit:
            raise NotAllowedError
        return unit * amount

    allowed = f'a duration such as "90s", "30m", "2h", "1d" or seconds, {_range(least)}'
    return Kind(allowed, read, _spell_duration)


def milliseconds(least: timedelta) -> Kind:
    """A stretch of time in the documents' unit."""

    def read(value: object) -> timedelta:
        amount = _whole(value)
        # Compared as numbers: not every one of them fits into a timedelta.
        if not least / _MILLISECOND <= amount <= _LONGEST / _MILLISECOND:
            raise NotAllowedError
        return timedelta(milliseconds=amount)

    return Kind(f"whole milliseconds, {_range(least)}", read)


def size(least: int) -> Kind:
    """Bytes; units are powers of 1024."""

    def read(value: object) -> int:
        match = _SIZE.fullmatch(_number_as_text(value).lower())
        if match is None:
            raise NotAllowedError
        amount = int(match[1]) * _MULTIPLES[match[2]]
        if not least <= amount <= _LARGEST:
            raise NotAllowedError
        return amount

    return Kind(f'bytes, or "512k", "512m", "2g"; at least {least}', read, _spell_size)


def processors() -> Kind:
    """A share of the machine."""
    most = 4096

    def read(value: object) -> float:
        text = _number_as_text(value)
        if _NUMBER.fullmatch(text) is None or not 0 < float(text) <= most:
            raise NotAllowedError
        return float(text)

    return Kind(f"a number above 0, such as 1.5, at most {most}", read)


def or_none(limit: Kind) -> Kind:
    """A limit that can be lifted."""

    def read(value: object) -> object:
        is_lifted = not isinstance(value, bool) and value in _NO_LIMIT
        return None if is_lifted else limit.read(value)

    def spell(value: object) -> str:
        return "none" if value is None else limit.spell(value)

    return Kind(f'{limit.allowed}, or "none"', read, spell)


def argv() -> Kind:
    """A program and its arguments; a text is split as a shell would, or is a JSON array."""

    def read(value: object) -> tuple[str, ...]:
        words = _split(value) if isinstance(value, str) else value
        if not isinstance(words, list | tuple):
            raise NotAllowedError
        # The kernel ends a word at a NUL.
        if not all(isinstance(word, str) and "\0" not in word for word in words):
            raise NotAllowedError
        if words and not words[0]:
            raise NotAllowedError("the program's name is empty")
        return tuple(words)

    return Kind('a list of words such as ["python3", "/srv/my_agent.py"]', read)


def senders() -> Kind:
    """Who may talk, by their ids; a text is split as a shell would, or is a JSON array."""

    def read(value: object) -> frozenset[str]:
        names = _split(value) if isinstance(value, str) else value
        if not isinstance(names, list | tuple):
            raise NotAllowedError
        with _as_not_allowed():
            return check_senders([_text(name) for name in names])

    return Kind('a list of senders\' ids such as ["operator", "alice"]', read)


def mounts() -> Kind:
    """Folders from elsewhere that an agent is to see; a text is split as a shell would, or is a
    JSON array."""

    def read(value: object) -> tuple[ExtraMount, ...]:
        asked = _split(value) if isinstance(value, str) else value
        if not isinstance(asked, list | tuple):
            raise NotAllowedError
        with _as_not_allowed():
            return check_mounts([parse_mount(one) for one in asked])

    example = '["/srv/notes", "/srv/photos:pictures:rw"] or [{path = "/srv/notes"}]'
    return Kind(f"a list such as {example}, written PATH[:NAME][:rw]", read)


def image() -> Kind:
    """The name of a container image."""

    def read(value: object) -> str:
        # It becomes a word on a command line, so it must not look like an option.
        if _IMAGE.fullmatch(name := _text(value)) is None:
            raise NotAllowedError
        return name

    return Kind("an image's name such as hallporter-agent:latest", read)


def zone() -> Kind:
    """A time zone."""

    def read(value: object) -> str:
        # POSIX writes a colon before a name.
        name = _text(value).removeprefix(":")
        if not is_zone(name):
            raise NotAllowedError
        return name

    return Kind("an IANA time zone such as Europe/Paris or UTC", read)


def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name."""
    try:
        # A missing zone is a KeyError, a path or rubbish a ValueError, a folder an OSError.
        return bool(name) and ZoneInfo(name).key == name
    except (KeyError, ValueError, OSError):
        return False


def address() -> Kind:
    """Where to listen, without a port."""

    def read(value: object) -> str:
        name = _text(value)
        try:
            return str(ipaddress.ip_address(name))
        except ValueError as error:
            # Digits and dots alone are a mistyped number, not a name.
            if _HOST_NAME.fullmatch(name) is None or name.replace(".", "").isdigit():
                raise NotAllowedError from error
            return name

    return Kind("an IP address or a host's name such as 127.0.0.1, ::1 or localhost", read)


def database() -> Kind:
    """Where the store is."""

    def read(value: object) -> str:
        url = _text(value)
        if url.startswith(("postgresql:", "postgres:")):
            raise NotAllowedError("postgresql:// is not available in this version yet")
        file = url.removeprefix("sqlite:///")
        if file in (url, "", "/", ":memory:") or not file.isprintable():
            raise NotAllowedError
        return url

    return Kind("sqlite:///FILE (below the home) or sqlite:////FOLDER/FILE", read)


@contextmanager
def _as_not_allowed() -> Iterator[None]:
    try:
        yield
    except InvalidRequestError as error:
        raise NotAllowedError(error.message) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise NotAllowedError
    return value


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if _WHOLE.fullmatch(text := _text(value)) is None:
        raise NotAllowedError
    return int(text)


def _number_as_text(value: object) -> str:
    """So that `90`, `1.5` and `"90s"` are read alike."""
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise NotAllowedError
    if isinstance(value, float):
        # No exponents, and no more digits than a microsecond has.
        return f"{value:.6f}"
    return str(value) if isinstance(value, int) else _text(value)


def _spell_duration(length: timedelta) -> str:
    for unit in "dhm":
        if length and not length % _UNITS[unit]:
            return f"{length // _UNITS[unit]}{unit}"
    return f"{length.total_seconds():g}s"


def _spell_size(count: int) -> str:
    for unit in "gmk":
        if count % _MULTIPLES[unit] == 0:
            return f"{count // _MULTIPLES[unit]}{unit}"
    return str(count)


def _range(least: timedelta) -> str:
    return f"from {least.total_seconds():g} seconds to {_LONGEST.days} days"


def _split(text: str) -> object:
    try:
        return json.loads(text) if text.lstrip().startswith("[") else shlex.split(text)
    except (ValueError, RecursionError) as error:
        raise NotAllowedError(str(error)) from error
