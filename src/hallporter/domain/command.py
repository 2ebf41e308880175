"""What an agent asks the host to do; its folder says who asks, never its content."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hallporter.domain.ids import ChatId, CommandId, Folder, TaskId


class Box(StrEnum):
    """The folders of the mailroom that requests lie in."""

    MESSAGES = "messages"
    TASKS = "tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMessage:
    """Words for a chat; without a target the group's own."""

    text: str
    sender: str | None = None  # how the speaker is shown
    target: ChatId | None = None
    file: str | None = None  # in the group's folder, as the agent sees it


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTask:
    """A standing prompt for the target's group; `folder` is what a request says of itself."""

    prompt: str
    schedule_type: str
    schedule_value: str
    id: str | None = None
    context_mode: str | None = None
    timezone: str | None = None
    misfire: str | None = None
    target: ChatId | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTask:
    """Only what is given changes."""

    task: TaskId
    prompt: str | None = None
    schedule_type: str | None = None
    schedule_value: str | None = None
    context_mode: str | None = None
    timezone: str | None = None
    misfire: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseTask:
    """No more ticks until it is resumed."""

    task: TaskId
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTask:
    """Ticks again, from now on."""

    task: TaskId
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTask:
    """The task and its ticks go."""

    task: TaskId
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """One tick now."""

    task: TaskId
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterGroup:
    """A chat becomes a group."""

    chat: str
    name: str
    folder: str
    trigger: str | None = None
    requires_trigger: bool = True
    assistant_name: str | None = None
    agent: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshGroups:
    """Look again which chats there are."""

    folder: str | None = None


TaskControl = PauseTask | ResumeTask | CancelTask | RunTask | UpdateTask
Command = SendMessage | ScheduleTask | TaskControl | RegisterGroup | RefreshGroups


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A command that was carried out or refused: its record, and what its agent is told."""

    id: CommandId
    folder: Folder
    box: Box
    name: str  # of the file it came in
    at: datetime
    kind: str
    is_ok: bool
    why: str
    result: Mapping[str, object]
