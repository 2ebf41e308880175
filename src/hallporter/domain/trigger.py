"""Whether a message wakes its chat, and why."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import re2

from hallporter.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from hallporter.domain.group import Group
    from hallporter.domain.message import Inbound

MAX_LENGTH = 256  # characters of a pattern
_FOLDED = 4  # characters that one of a word may be written with
_REST = 200  # characters behind it
_MAX_MEMORY = 1 << 20  # bytes re2 may use for one compiled pattern


@dataclass(frozen=True, slots=True)
class Wake:
    """The decision of intake about one message."""

    wakes: bool
    why: str


def check_trigger(pattern: str) -> str:
    """The trimmed pattern, or an error that says what is wrong with it."""
    trimmed = pattern.strip()
    if not trimmed or len(trimmed) > MAX_LENGTH:
        message = f"a trigger has 1 to {MAX_LENGTH} characters, for example '@Andy'"
        raise InvalidRequestError(message, field="trigger", value=pattern[:80])
    if _word_of(trimmed) is None:
        _compiled(trimmed)
    return trimmed


def default_trigger(name: str) -> str:
    """What addresses an assistant of this name: `@Name` at the start of a message."""
    pattern = f"@{name}"
    # A name with spaces or dots is no `@Word`, and must not be read as a pattern.
    return pattern if _word_of(pattern) else rf"^@{re2.escape(name)}(?:[^\pL\pN\pM_]|$)"


def is_trigger(pattern: str, text: str) -> bool:
    """Exactly `@Word` means that word at the start of the trimmed text; else a regex, searched."""
    trimmed = text.strip()
    word = _word_of(pattern)
    if word is None:
        return _compiled(pattern).search(trimmed) is not None
    return after_word(trimmed, word) is not None


def after_word(text: str, word: str) -> str | None:
    """What follows `word` at the start of `text`, in folded letters and cut after some hundred;
    None when it is not there, or goes on. Accents may come composed or apart, and letter case may
    change a word's length."""
    # Only the beginning: putting accents in order takes the square of their number.
    folded, wanted = _fold(text[: _FOLDED * len(word) + _REST]), _fold(word)
    rest = folded[len(wanted) :]
    if not folded.startswith(wanted) or (rest and _in_word(rest[0])):
        return None
    return rest


def wake(group: Group, message: Inbound) -> Wake:
    """Main and groups without a trigger rule always wake; others by trigger, mention or reply."""
    if group.is_main:
        return Wake(True, "main group")
    if not group.requires_trigger:
        return Wake(True, "no trigger needed")
    if message.mentions_us:
        return Wake(True, "mentioned")
    if is_trigger(group.trigger, message.text):
        return Wake(True, "trigger")
    return Wake(False, "no trigger")


def _fold(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", composed.casefold())


def _in_word(char: str) -> bool:
    # Marks belong to the letter before them: an accent or a vowel sign does not end a word.
    return char == "_" or unicodedata.category(char)[0] in "LNM"


def _word_of(pattern: str) -> str | None:
    """`@Word` as a word, or None when the pattern is a regex."""
    rest = pattern[1:]
    is_word = pattern.startswith("@") and rest and all(_in_word(char) for char in rest)
    return pattern if is_word else None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re2._Regexp[str]:
    options = re2.Options()
    options.case_sensitive = False
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown"
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        message = f"trigger {pattern!r} is not a valid pattern: {text}"
        raise InvalidRequestError(message, field="trigger", value=pattern) from error
