"""From the words of the protocol to our own, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.command import (
    CancelTask,
    Command,
    PauseTask,
    RefreshGroups,
    RegisterGroup,
    ResumeTask,
    RunTask,
    ScheduleTask,
    SendMessage,
    UpdateTask,
)
from hallporter.domain.ids import ChatId, TaskId
from hallporter_wire.requests import (
    ControlRequest,
    MessageRequest,
    RefreshRequest,
    RegisterRequest,
    Request,
    ScheduleRequest,
    UpdateRequest,
    Verb,
)
from hallporter_wire.snapshots import GroupEntry, TaskEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.domain.task import Task
    from hallporter.switchboard.discovery import KnownChat

_CONTROLS: Mapping[Verb, type[PauseTask | ResumeTask | CancelTask | RunTask]] = {
    "pause_task": PauseTask,
    "resume_task": ResumeTask,
    "cancel_task": CancelTask,
    "run_task": RunTask,
}
_DETAILS = {"chat": "jid"}  # the others have the same name there


def to_command(request: Request) -> Command:
    match request:
        case MessageRequest():
            return SendMessage(
                text=request.text,
                sender=request.sender,
                target=_chat(request.target),
                file=request.file,
            )
        case ScheduleRequest():
            return ScheduleTask(
                prompt=request.prompt,
                schedule_type=request.schedule_type,
                schedule_value=request.schedule_value,
                id=request.task,
                context_mode=request.context_mode,
                timezone=request.timezone,
                misfire=request.misfire,
                target=_chat(request.target),
                folder=request.folder,
            )
        case UpdateRequest():
            return UpdateTask(
                task=TaskId(request.task),
                prompt=request.prompt,
                schedule_type=request.schedule_type,
                schedule_value=request.schedule_value,
                context_mode=request.context_mode,
                timezone=request.timezone,
                misfire=request.misfire,
                folder=request.folder,
            )
        case ControlRequest():
            return _CONTROLS[request.verb](task=TaskId(request.task), folder=request.folder)
        case RegisterRequest():
            return RegisterGroup(
                chat=request.chat,
                name=request.name,
                folder=request.folder,
                trigger=request.trigger,
                requires_trigger=request.requires_trigger,
                assistant_name=request.assistant_name,
                agent=request.settings or None,
            )
        case RefreshRequest():
            return RefreshGroups(folder=request.folder)


def to_details(result: Mapping[str, object]) -> Mapping[str, object]:
    """What there is to tell of an effect."""
    return {_DETAILS.get(name, name): value for name, value in result.items()}


def to_task_entry(task: Task) -> TaskEntry:
    return TaskEntry(
        id=task.id,
        folder=task.folder,
        chat=task.chat,
        prompt=task.prompt,
        schedule_type=str(task.schedule.type),
        schedule_value=task.schedule.value,
        context_mode=str(task.context_mode),
        timezone=task.schedule.timezone,
        misfire=str(task.misfire),
        status=str(task.status),
        next_run=task.next_at,
        last_run=task.last_at,
    )


def to_group_entry(chat: KnownChat) -> GroupEntry:
    return GroupEntry(
        chat=chat.chat,
        name=chat.name,
        channel=chat.channel,
        is_group=chat.is_group,
        last_activity=chat.last_activity,
        folder=chat.folder,
    )


def _chat(target: str | None) -> ChatId | None:
    return None if target is None else ChatId(target)
