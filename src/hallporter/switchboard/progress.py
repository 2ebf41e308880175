"""A turn under way: what it was opened with, and how far its answers have come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.task import ContextMode

if TYPE_CHECKING:
    from hallporter.domain.brief import Batch
    from hallporter.domain.chat import Chat
    from hallporter.domain.group import Group
    from hallporter.domain.ids import MessageId
    from hallporter.domain.task import Task
    from hallporter.domain.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A chat was claimed: this turn, this group, this much to say, or this task to do."""

    turn: Turn
    chat: Chat
    group: Group
    batch: Batch
    task: Task | None = None
    sent: tuple[str, ...] = ()  # by earlier attempts, in messages of their own (R13)

    @property
    def is_isolated(self) -> bool:
        """Whether it neither goes on in the group's session nor leaves one (R11)."""
        return self.task is not None and self.task.context_mode is ContextMode.ISOLATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a turn's answers have come; each block makes the next one."""

    blocks: int = 0
    has_success: bool = False
    has_text: bool = False
    covers: tuple[int, int] = (0, 0)  # of the last block that covered something
    covered: tuple[MessageId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a block's transaction did."""

    progress: Progress
    is_end: bool
    keeps_session: bool  # False: someone began a new session, so the agent must go
