"""The backlog becomes what the agent is given, with what it should know of earlier attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.brief import Batch, Line
from hallporter.domain.reply import strip_internal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.books import Tx
    from hallporter.domain.chat import Chat
    from hallporter.domain.message import Message
    from hallporter.domain.turn import Turn

_MOST_SENT = 20  # messages that an earlier attempt is reminded of, the newest
_SENT_CHARACTERS = 500  # of each


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


def sent_since(tx: Tx, chat: Chat, earlier: Sequence[Turn]) -> tuple[str, ...]:
    """What agents sent by themselves since the first of these attempts (R13): their answers are
    counted by the cursor, those words are not."""
    if not earlier:
        return ()
    since = min(turn.started_at for turn in earlier)
    said = tx.messages.sent(chat.id, chat.cursor, since)[-_MOST_SENT:]
    return tuple(
        text if len(text) <= _SENT_CHARACTERS else f"{text[:_SENT_CHARACTERS]}…" for text in said
    )
