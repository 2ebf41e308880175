"""What an agent asks of the host: one file each, read in either dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from hallporter_wire.errors import WireError
from hallporter_wire.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_REQUEST = 1024 * 1024  # bytes of one file
MESSAGES, TASKS = "messages", "tasks"  # the folders that requests lie in

Verb: TypeAlias = Literal["pause_task", "resume_task", "cancel_task", "run_task"]
_VERBS: tuple[Verb, ...] = get_args(Verb)

# The first name that is there counts. What names a target goes before 000's `chatJid`, which every
# request of that dialect carries.
_TARGET = ("targetJid", "target_group_jid", "target_jid", "chatJid", "chat_jid")
_FOLDER = ("groupFolder", "group_folder")
_TASK = ("taskId", "task_id")
_SCHEDULE_TYPE = ("scheduleType", "schedule_type")
_SCHEDULE_VALUE = ("scheduleValue", "schedule_value")
_CONTEXT_MODE = ("contextMode", "context_mode")
_JID = ("jid", "chatJid", "chat_jid")
_TRIGGER = ("trigger", "triggerPattern", "trigger_pattern")
_REQUIRES_TRIGGER = ("requiresTrigger", "requires_trigger")
_ASSISTANT_NAME = ("assistantName", "assistant_name")
# What a group has besides, in either spelling; the host judges who may set it.
_SETTINGS = {
    "isMain": "is_main",
    "is_main": "is_main",
    "mounts": "mounts",
    "senders": "senders",
    "roles": "roles",
    "limits": "limits",
    "mode": "mode",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRequest:
    """`{"type": "message"}`: words for a chat."""

    text: str
    sender: str | None = None
    target: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRequest:
    """`{"type": "schedule_task"}`: a standing prompt."""

    prompt: str
    schedule_type: str
    schedule_value: str
    task: str | None = None
    context_mode: str | None = None
    timezone: str | None = None
    misfire: str | None = None
    target: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """`{"type": "update_task"}`: what is absent stays as it is."""

    task: str
    prompt: str | None = None
    schedule_type: str | None = None
    schedule_value: str | None = None
    context_mode: str | None = None
    timezone: str | None = None
    misfire: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRequest:
    """The requests about a task that need no more than its id."""

    verb: Verb
    task: str
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRequest:
    """`{"type": "register_group"}`: a chat becomes a group."""

    chat: str
    name: str
    folder: str
    trigger: str | None = None
    requires_trigger: bool = True
    assistant_name: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """`{"type": "refresh_groups"}`: look again which chats there are."""

    folder: str | None = None


Request: TypeAlias = (
    MessageRequest
    | ScheduleRequest
    | UpdateRequest
    | ControlRequest
    | RegisterRequest
    | RefreshRequest
)


def decode_request(data: bytes, box: str) -> Request:
    """Read either dialect; raises WireError that names the field at fault."""
    fields = Fields(data)
    kind = fields.required_text("type")
    if box == MESSAGES:
        if kind != "message":
            raise WireError(f"must be 'message' in {MESSAGES}/, not {kind[:80]!r}", field="type")
        return _message(fields)
    match kind:
        case "schedule_task":
            return _schedule(fields)
        case "update_task":
            return _update(fields)
        case "register_group":
            return _register(fields)
        case "refresh_groups":
            return RefreshRequest(folder=_text(fields, _FOLDER))
        case "message":
            raise WireError(f"a message belongs in {MESSAGES}/", field="type")
    for verb in _VERBS:
        if verb == kind:
            return ControlRequest(
                verb=verb, task=_required(fields, _TASK), folder=_text(fields, _FOLDER)
            )
    known = ("schedule_task", "update_task", *_VERBS, "register_group", "refresh_groups")
    raise WireError(f"must be one of {', '.join(known)}, not {kind[:80]!r}", field="type")


def _message(fields: Fields) -> MessageRequest:
    return MessageRequest(
        text=fields.required_text("text"),
        sender=fields.text("sender"),
        target=_text(fields, _TARGET),
        file=fields.text("file"),
    )


def _schedule(fields: Fields) -> ScheduleRequest:
    value = _value(fields)
    if value is None:
        raise WireError("is missing", field=_SCHEDULE_VALUE[-1])
    return ScheduleRequest(
        prompt=fields.required_text("prompt"),
        schedule_type=_required(fields, _SCHEDULE_TYPE),
        schedule_value=value,
        task=_text(fields, _TASK),
        context_mode=_text(fields, _CONTEXT_MODE),
        timezone=fields.text("timezone"),
        misfire=fields.text("misfire"),
        target=_text(fields, _TARGET),
        folder=_text(fields, _FOLDER),
    )


def _update(fields: Fields) -> UpdateRequest:
    return UpdateRequest(
        task=_required(fields, _TASK),
        prompt=fields.text("prompt"),
        schedule_type=_text(fields, _SCHEDULE_TYPE),
        schedule_value=_value(fields),
        context_mode=_text(fields, _CONTEXT_MODE),
        timezone=fields.text("timezone"),
        misfire=fields.text("misfire"),
        folder=_text(fields, _FOLDER),
    )


def _register(fields: Fields) -> RegisterRequest:
    flags = [fields.flag(name) for name in _REQUIRES_TRIGGER]
    settings = fields.mapping("agent") | _container_config(fields)
    settings |= {
        key: fields.any(name) for name, key in _SETTINGS.items() if fields.any(name) is not None
    }
    return RegisterRequest(
        chat=_required(fields, _JID),
        name=fields.required_text("name"),
        folder=fields.required_text("folder"),
        trigger=_text(fields, _TRIGGER),
        requires_trigger=next((flag for flag in flags if flag is not None), True),
        assistant_name=_text(fields, _ASSISTANT_NAME),
        settings=settings,
    )


def _container_config(fields: Fields) -> dict[str, object]:
    """NanoClaw's own settings of a group: their time-out is in milliseconds."""
    config = fields.mapping("containerConfig") | fields.mapping("container_config")
    timeout = config.get("timeout")
    if isinstance(timeout, int | float) and not isinstance(timeout, bool):
        config["timeout"] = timeout / 1000
    return config


def _value(fields: Fields) -> str | None:
    """An interval may be written as the number it is."""
    for name in _SCHEDULE_VALUE:
        value = fields.any(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return _text(fields, _SCHEDULE_VALUE)


def _text(fields: Fields, names: tuple[str, ...]) -> str | None:
    """All of them are looked at: a wrong one is told, even where another counts."""
    found = [text for text in (fields.text(name) for name in names) if text is not None]
    return found[0] if found else None


def _required(fields: Fields, names: tuple[str, ...]) -> str:
    text = _text(fields, names)
    if text is None:
        raise WireError("is missing", field=min(names, key=len))
    return text
