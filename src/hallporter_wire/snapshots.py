"""What an agent may know of tasks and chats: two files that the host keeps for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter_wire.fields import camel, clean, dump, instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

CURRENT_TASKS = "current_tasks.json"
AVAILABLE_GROUPS = "available_groups.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """One task."""

    id: str
    folder: str
    chat: str
    prompt: str
    schedule_type: str
    schedule_value: str
    context_mode: str
    timezone: str
    misfire: str
    status: str
    next_run: datetime | None
    last_run: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntry:
    """One known chat; `folder` is None while nobody has registered it."""

    chat: str
    name: str
    channel: str
    is_group: bool
    last_activity: datetime | None
    folder: str | None


def encode_tasks(entries: Sequence[TaskEntry]) -> bytes:
    """An array; each key in the spelling of both dialects."""
    return clean(dump([_task(entry) for entry in entries])).encode()


def encode_groups(entries: Sequence[GroupEntry], *, last_sync: datetime) -> bytes:
    """An object with the chats, and when they were looked up."""
    groups = [_group(entry) for entry in entries]
    return clean(dump({"groups": groups, "lastSync": instant(last_sync)})).encode()


def _task(entry: TaskEntry) -> dict[str, object]:
    plain = {
        "group_folder": entry.folder,
        "chat_jid": entry.chat,
        "schedule_type": entry.schedule_type,
        "schedule_value": entry.schedule_value,
        "context_mode": entry.context_mode,
        "next_run": _instant(entry.next_run),
        "last_run": _instant(entry.last_run),
    }
    return {
        "id": entry.id,
        "prompt": entry.prompt,
        "timezone": entry.timezone,
        "misfire": entry.misfire,
        "status": entry.status,
        **plain,
        **{camel(name): value for name, value in plain.items()},
    }


def _group(entry: GroupEntry) -> dict[str, object]:
    return {
        "jid": entry.chat,
        "name": entry.name,
        "lastActivity": _instant(entry.last_activity),
        "isRegistered": entry.folder is not None,
        "folder": entry.folder,
        "channel": entry.channel,
        "isGroup": entry.is_group,
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else instant(at)
