"""The fields of one JSON object, read by hand so that both sides share nothing but the stdlib."""

from __future__ import annotations

import json
import re
from datetime import UTC
from typing import TYPE_CHECKING, TypeGuard

from hallporter_wire.errors import WireError

if TYPE_CHECKING:
    from datetime import datetime

# Half a surrogate pair has no UTF-8 and PostgreSQL refuses NUL: neither may enter the house.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_LARGE = 10**100


def clean(text: str) -> str:
    """The text with each character that no database could hold replaced."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def dump(value: object) -> str:
    """Compact JSON on one line, every character written as itself."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def present(fields: dict[str, object]) -> dict[str, object]:
    """The fields that have a value: the documents' optional fields are absent, never null."""
    return {name: value for name, value in fields.items() if value is not None}


def camel(name: str) -> str:
    """A name as 000 spells it: `next_run` is `nextRun`."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def instant(at: datetime) -> str:
    """A moment as both dialects write it."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def encode(fields: dict[str, object]) -> bytes:
    """One JSON object as UTF-8."""
    return clean(dump(fields)).encode()


class Fields:
    """A decoded JSON object that says which field is wrong; null counts as absent."""

    def __init__(self, data: bytes) -> None:
        try:
            value = json.loads(data)
        # Both are reachable from outside: digits beyond Python's limit, brackets nested too deep.
        except (ValueError, RecursionError) as error:
            raise WireError(f"not JSON: {error}") from error
        if not isinstance(value, dict):
            raise WireError(f"must be a JSON object, not {_kind(value)}")
        self._values: dict[str, object] = value

    def text(self, name: str) -> str | None:
        """A string, or None when absent."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise _mismatch(name, "a string", value)
        return clean(value)

    def required_text(self, name: str) -> str:
        """A string that must be there."""
        value = self.text(name)
        if value is None:
            raise WireError("is missing", field=name)
        return value

    def flag(self, name: str) -> bool | None:
        """A boolean, or None when absent."""
        value = self._values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise _mismatch(name, "true or false", value)

    def number(self, name: str) -> int | None:
        """A sequence number, or None when absent."""
        value = self._values.get(name)
        if value is None:
            return None
        if not is_sequence_number(value):
            raise _mismatch(name, "a whole number from 0 up", value)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings, empty when absent."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise _mismatch(name, "a list of strings", value)
        return tuple(_member(name, item) for item in value)

    def text_map(self, name: str) -> dict[str, str]:
        """An object of strings, empty when absent."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _mismatch(name, "an object of strings", value)
        return {clean(key): _member(name, item) for key, item in value.items()}

    def mapping(self, name: str) -> dict[str, object]:
        """An object whose values nobody looked at, empty when absent."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _mismatch(name, "an object", value)
        return {clean(key): item for key, item in value.items()}

    def any(self, name: str) -> object:
        """Whatever stands there, unchecked; None when absent."""
        return self._values.get(name)

    def all(self) -> dict[str, object]:
        """Everything, unchecked."""
        return dict(self._values)


def is_sequence_number(value: object) -> TypeGuard[int]:
    """Whether it can be a sequence number; JSON's true and false are not numbers here."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _member(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _mismatch(name, "strings throughout", value)
    return clean(value)


def _mismatch(name: str, wanted: str, value: object) -> WireError:
    return WireError(f"must be {wanted}, not {_kind(value)}", field=name)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() if abs(value) > _LARGE:  # what has no float cannot be written as one
            return "a huge number"
        case int() | float():
            return f"the number {value:.12g}"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
