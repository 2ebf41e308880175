"""A standing prompt, and each of its due times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.ids import TaskId

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.ids import ChatId, Folder
    from hallporter.domain.schedule import Schedule

LATE_AFTER = timedelta(minutes=1)  # from when on a tick that ran is called late
MAX_FAILURES = 5  # in a row; then the task is paused and the operator told
MAX_INTERRUPTIONS = 10  # attempts of one tick that the host's own end may cut short
MAX_PROMPT = 32_768  # characters
MAX_TICKS = 1000  # rows kept of one task, the newest

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN = 80  # characters of a refused value that are told back
_Choice = TypeVar("_Choice", bound=StrEnum)
_EXCERPT = 60  # characters


class Status(StrEnum):
    """Whether a task will fire again."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"


class ContextMode(StrEnum):
    """Whether a run goes on in the group's session or has none."""

    GROUP = "group"
    ISOLATED = "isolated"


class Misfire(StrEnum):
    """What happens to due times that nobody was there for."""

    ONCE = "once"  # the last one is made up for
    SKIP = "skip"
    ALL = "all"  # each of them, up to a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`anchor` is where an interval's grid begins; `next_at` is None while it will not fire."""

    id: TaskId
    folder: Folder
    chat: ChatId
    prompt: str
    schedule: Schedule
    context_mode: ContextMode
    misfire: Misfire
    status: Status
    anchor: datetime
    next_at: datetime | None
    created_at: datetime
    created_by: str  # the folder that asked for it, or the operator
    last_at: datetime | None = None
    failures: int = 0  # in a row


class TickState(StrEnum):
    """What has become of a due time; the public names."""

    DUE = "due"
    RUNNING = "running"
    RAN = "ran"
    LATE = "late"  # it ran, but some time after it was due
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One due time; unique by task and due. `attempts` counts its turns."""

    task: TaskId
    due: datetime
    chat: ChatId
    state: TickState
    why: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0

    @property
    def lateness(self) -> timedelta | None:
        """From its due time to its start."""
        return None if self.started_at is None else self.started_at - self.due


@dataclass(frozen=True, slots=True, kw_only=True)
class Burden:
    """What the tasks of a folder take together."""

    tasks: int
    words: int  # characters of their prompts
    per_minute: float  # ticks of those that are active intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """A completed task, without its prompt."""

    id: TaskId
    words: int  # characters of it


def excerpt(prompt: str) -> str:
    """Its first words on one line: how people recognise a task."""
    line = " ".join(prompt.split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1].rstrip()}…"


def parse_id(text: str) -> TaskId:
    """An id that the asker has chosen. Raises `InvalidRequestError`."""
    if not _ID.fullmatch(text):
        message = f"{text[:_SHOWN]!r} is no id for a task: 1 to 64 letters, digits, '_' and '-'"
        raise InvalidRequestError(message, field="id", value=text[:_SHOWN])
    return TaskId(text)


def parse_prompt(text: str) -> str:
    """Raises `InvalidRequestError`."""
    trimmed = text.strip()
    if not 1 <= len(trimmed) <= MAX_PROMPT:
        what = f"has {len(trimmed):,} characters" if trimmed else "is empty"
        message = f"the prompt {what}: a task's prompt has 1 to {MAX_PROMPT:,} characters"
        raise InvalidRequestError(message, field="prompt", value=text[:_SHOWN])
    return trimmed


def parse_context_mode(text: str) -> ContextMode:
    """Raises `InvalidRequestError`."""
    return _chosen(ContextMode, text, "context_mode")


def parse_misfire(text: str) -> Misfire:
    """Raises `InvalidRequestError`."""
    return _chosen(Misfire, text, "misfire")


def _chosen(kind: type[_Choice], text: str, field: str) -> _Choice:
    try:
        return kind(text)
    except ValueError:
        allowed = " or ".join(f"'{one}'" for one in kind)
        message = f"{field} is {allowed}, not {text[:_SHOWN]!r}"
        raise InvalidRequestError(message, field=field, value=text[:_SHOWN]) from None
