"""How much of a backlog goes into one prompt (R16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.message import Message

MAX_MESSAGES = 200
MAX_BYTES = 100_000  # of text; the newest message always goes in, however long


@dataclass(frozen=True, slots=True)
class Backlog:
    """The newest messages that fit, and those left out before them."""

    kept: tuple[Message, ...]
    omitted: tuple[Message, ...]


def cap(messages: Sequence[Message]) -> Backlog:
    """Cut from the old end; order is kept."""
    size = 0
    start = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        size += len(messages[index].text.encode())
        too_much = size > MAX_BYTES or len(messages) - index > MAX_MESSAGES
        if too_much and start < len(messages):
            break
        start = index
        if too_much:
            break
    return Backlog(tuple(messages[start:]), tuple(messages[:start]))
