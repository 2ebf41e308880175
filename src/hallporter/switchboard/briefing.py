"""The backlog becomes what the agent is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.brief import Batch, Line
from hallporter.domain.reply import strip_internal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.message import Message


def to_batch(messages: Sequence[Message], omitted: int = 0) -> Batch:
    """Messages in order; none is empty of meaning to the agent, so none is dropped here."""
    return Batch(
        lines=tuple(
            Line(
                id=message.id,
                at=message.at,
                sender=message.sender_name,
                text=strip_internal(message.text, hides_unclosed=False),
            )
            for message in messages
        ),
        through=messages[-1].seq,
        omitted=omitted,
    )
