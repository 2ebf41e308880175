"""What waits in a chat is gathered for the agent: only the words that go in are read (R16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.backlog import cap, surely_omitted

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.ids import ChatId
    from hallporter.domain.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The messages that go in; the `omitted` ones before them reach up to `after`."""

    kept: tuple[Message, ...]
    omitted: int
    after: int


def gather(tx: Tx, chat: ChatId, after: int) -> Gathered | None:
    """What waits past `after`; None when nothing of it asks for an answer."""
    waiting = tx.messages.waiting(chat, after)
    if not any(one.wakes for one in waiting):
        return None
    unread = surely_omitted(waiting)
    if unread:
        after = unread[-1].seq
    backlog = cap(tx.messages.backlog(chat, after))
    if backlog.omitted:
        after = backlog.omitted[-1].seq
    return Gathered(kept=backlog.kept, omitted=len(unread) + len(backlog.omitted), after=after)
