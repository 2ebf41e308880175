"""One pass of a backlog through an agent: the unit of queueing and retry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.ids import ChatId, TaskId, TurnId


class Outcome(StrEnum):
    """How a turn ended."""

    ANSWERED = "answered"
    SILENT = "silent"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"  # by the host's own end


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """`cursor` is where it began; `piped` how far it was given the chat's messages."""

    id: TurnId
    chat: ChatId
    epoch: int
    attempt: int
    session_no: int
    waiting_since: datetime
    started_at: datetime
    cursor: int
    piped: int
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    why: str = ""
    task: TaskId | None = None  # it serves a tick, not the backlog
    due: datetime | None = None


class What(StrEnum):
    """What is noted of a turn while it runs."""

    GIVEN = "given"  # the first batch
    PIPED = "piped"  # a follow-up into the running agent
    BLOCK = "block"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One line of a turn's record: it concerns the messages in (after, through]."""

    turn: TurnId
    at: datetime
    what: What
    after: int
    through: int
    why: str = ""
