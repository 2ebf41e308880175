"""What another system has kept, as its reader hands it in: not yet judged by our rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from hallporter.domain.extra_mount import ExtraMount
    from hallporter.domain.group import SenderRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Something of it that makes no sense; `why` completes "… is left out: "."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignHouse:
    """What holds for all of it; `remarks` is what its owner should know."""

    assistant_name: str | None = None
    timezone: str | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignChat:
    chat: str
    name: str | None
    channel: str  # that it came from, by its name there
    is_group: bool
    last_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignGroup:
    """`session_id` is its agent's, when what that remembers is there too."""

    chat: str
    name: str
    folder: str
    trigger: str | None
    requires_trigger: bool
    is_main: bool
    added_at: datetime | None
    channel: str
    mounts: tuple[ExtraMount, ...] = ()
    timeout: timedelta | None = None
    senders: SenderRule | None = None
    session_id: str | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTask:
    id: str
    folder: str
    chat: str
    prompt: str
    schedule_type: str
    schedule_value: str
    context_mode: str
    status: str
    next_at: datetime | None
    last_at: datetime | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """One time that a task ran; `error` is empty when it went well."""

    task: str
    at: datetime
    took: timedelta | None
    is_ok: bool
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMessage:
    """`was_given` says that an agent had seen it there."""

    chat: str
    id: str
    sender: str
    sender_name: str
    text: str
    at: datetime
    is_bot: bool
    was_given: bool
    channel: str
    remarks: tuple[str, ...] = ()
