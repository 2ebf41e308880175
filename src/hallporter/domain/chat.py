"""A place to talk, seen by one account, and where it stands: head, cursor, epoch, session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.domain.ids import SANDBOXES

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.ids import ChatId, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSeen:
    """What a channel knows of a chat, registered or not (the second callback of 001 4.2)."""

    chat: ChatId
    channel: str
    at: datetime
    name: str | None = None
    is_group: bool | None = None
    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Where a chat stands. `head` is the last sequence number given out, `cursor` the last one
    that an agent has answered for, `epoch` counts claims and fences their writes."""

    id: ChatId
    channel: str
    account: str = ""
    name: str | None = None
    is_group: bool = False
    seen_at: datetime | None = None
    pool: Pool = SANDBOXES
    head: int = 0
    cursor: int = 0
    epoch: int = 0
    session_no: int = 0
    session_id: str | None = None
    woken_at: datetime | None = None  # waits for a claim since then
    not_before: datetime | None = None  # backoff of the retry ladder
    due_at: datetime | None = None  # a tick waits for a claim since then, whatever the backoff
    attempts: int = 0  # failures on the present rung of the ladder
    is_parked: bool = False  # one ladder is used up: the next one gives up
    interruptions: int = 0  # turns cut short by the host's own end, in a row

    def woken(self, at: datetime, not_before: datetime | None = None) -> Chat:
        """Waiting for a claim; an earlier wait keeps its place in the line."""
        return replace(self, woken_at=self.woken_at or at, not_before=not_before)

    def rung(self, at: datetime) -> Chat:
        """A tick waits for a claim; the backlog and its backoff stay as they are."""
        return replace(self, due_at=self.due_at or at)

    def settled(self, cursor: int) -> Chat:
        """Answered up to `cursor`; earlier trouble is forgotten."""
        return replace(
            self,
            cursor=max(self.cursor, cursor),
            attempts=0,
            is_parked=False,
            interruptions=0,
            not_before=None,
        )

    def renewed(self) -> Chat:
        """A fresh session; whoever still writes under the old number is ignored."""
        return replace(self, session_no=self.session_no + 1, session_id=None)
