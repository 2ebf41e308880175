"""How much of a backlog goes into one prompt (R16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.portion import fitting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.message import Message

MAX_MESSAGES = 200
MAX_BYTES = 100_000  # of text; the newest message always goes in, however long


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message of a backlog without its words; `size` is how many characters they have."""

    seq: int
    size: int
    wakes: bool


@dataclass(frozen=True, slots=True)
class Backlog:
    """The newest messages that fit, and those left out before them."""

    kept: tuple[Message, ...]
    omitted: tuple[Message, ...]


def surely_omitted(waiting: Sequence[Waiting]) -> Sequence[Waiting]:
    """Those whose words need not be read: a character has a byte at least, so `cap` would leave
    them out too."""
    return waiting[: _start([one.size for one in waiting])]


def cap(messages: Sequence[Message]) -> Backlog:
    """Cut from the old end; order is kept."""
    start = _start([len(message.text.encode()) for message in messages])
    return Backlog(tuple(messages[start:]), tuple(messages[:start]))


def _start(sizes: Sequence[int]) -> int:
    newest_first = sizes[: -MAX_MESSAGES - 1 : -1]
    return len(sizes) - fitting(newest_first, MAX_BYTES)
