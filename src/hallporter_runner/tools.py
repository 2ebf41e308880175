"""The host's tools as an agent sees them: their names, what they take, which calls make sense."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter_runner.schedules import TYPES, trouble_with
from hallporter_wire.requests import MESSAGES, TASKS

if TYPE_CHECKING:
    from collections.abc import Mapping

LIST_TASKS, SCHEDULE_TASK, UPDATE_TASK = "list_tasks", "schedule_task", "update_task"
_MAIN_ONLY = "only the main group may do that, and this is not the main group"


class ToolError(Exception):
    """A call that cannot be carried out: a sentence for the agent, which names the part of the call
    it is `about`; `words` alone are for people."""

    def __init__(self, words: str, *, about: str = "") -> None:
        super().__init__(f"{about}: {words}" if about else words)
        self.words = words


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A string, or a boolean when it `is_flag`; `key` is its name in the request to the host."""

    name: str
    says: str
    key: str = ""
    is_required: bool = False
    is_flag: bool = False
    choices: tuple[str, ...] = ()
    pattern: str = ""
    is_for_main: bool = False

    def schema(self) -> dict[str, object]:
        """Its JSON Schema."""
        shape: dict[str, object] = {
            "type": "boolean" if self.is_flag else "string",
            "description": self.says,
        }
        if self.choices:
            shape["enum"] = list(self.choices)
        if self.pattern:
            shape["pattern"] = f"^{self.pattern}$"
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing to ask of the host; `type` is the request's name for it, in which box it goes."""

    name: str
    says: str
    parameters: tuple[Parameter, ...] = ()
    box: str = TASKS
    type: str = ""
    is_for_main: bool = False

    def schema(self) -> dict[str, object]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {each.name: each.schema() for each in self.parameters},
            "required": [each.name for each in self.parameters if each.is_required],
            "additionalProperties": False,
        }


def request_of(
    tool: Tool, arguments: Mapping[str, object], *, is_main: bool | None
) -> dict[str, object]:
    """The call as a request; raises ToolError. Who does not know whether it is main has the host
    decide: None."""
    if tool.is_for_main and is_main is False:
        raise ToolError(_MAIN_ONLY, about=tool.name)
    if unknown := set(arguments) - {each.name for each in tool.parameters}:
        known = ", ".join(each.name for each in tool.parameters) or "nothing"
        raise ToolError(f"{tool.name} takes {known}, not {', '.join(sorted(unknown))}")
    request: dict[str, object] = {"type": tool.type or tool.name}
    for parameter in tool.parameters:
        value = _checked(parameter, arguments.get(parameter.name), is_main=is_main)
        if value is not None:
            request[parameter.key or parameter.name] = value
    if tool.name == UPDATE_TASK and set(request) == {"type", "taskId"}:
        raise ToolError("there is nothing to change: give a prompt, a schedule or another setting")
    _check_schedule(request)
    return request


def _checked(parameter: Parameter, value: object, *, is_main: bool | None) -> str | bool | None:
    name = parameter.name
    if value is None:
        if parameter.is_required:
            raise ToolError(f"{name} is missing: {parameter.says}")
        return None
    if parameter.is_for_main and is_main is False:
        raise ToolError(f"{_MAIN_ONLY}; without it, this group's own chat is meant", about=name)
    if parameter.is_flag:
        if not isinstance(value, bool):
            raise ToolError(f"{name} must be true or false, not {value!r}")
        return value
    if not isinstance(value, str):
        raise ToolError(f"{name} must be a string, not {value!r}")
    if not value.strip():
        raise ToolError(f"{name} is empty: {parameter.says}")
    if parameter.pattern and not re.fullmatch(parameter.pattern, value):
        raise ToolError(f"{name} cannot be {value!r}: {parameter.says}")
    if parameter.choices and value not in parameter.choices:
        raise ToolError(f"{name} must be one of {', '.join(parameter.choices)}, not {value!r}")
    return value


def _check_schedule(request: Mapping[str, object]) -> None:
    schedule_type, value = request.get("schedule_type"), request.get("schedule_value")
    if isinstance(schedule_type, str) and isinstance(value, str):
        if trouble := trouble_with(schedule_type, value):
            raise ToolError(trouble, about="schedule_value")
    elif schedule_type is not None:
        raise ToolError("schedule_value is missing: another schedule_type needs another value")


_TASK = Parameter(
    name="task_id", key="taskId", says="The task's id, as list_tasks shows it.", is_required=True
)
_PROMPT = "What you will be told to do each time the task is due."
_SCHEDULE_TYPE = "cron: at times of the clock; interval: again and again; once: one time."
_SCHEDULE_VALUE = (
    "cron: five fields such as '0 9 * * *', or a word such as '@daily'; interval: milliseconds such"
    " as '300000'; once: the local time without Z or offset, such as '2026-02-23T15:30:00'."
)
_HOW_IT_RUNS = (
    Parameter(
        name="context_mode",
        says="group (the default): in this group's session; isolated: in a fresh one each time.",
        choices=("group", "isolated"),
    ),
    Parameter(
        name="timezone",
        says="The zone of the schedule, such as 'Europe/Berlin'; by default the host's.",
    ),
    Parameter(
        name="misfire",
        says="When the host was off at due times: once (the default) makes up for the last,"
        " skip for none, all for each.",
        choices=("once", "skip", "all"),
    ),
)

_ALL = (
    Tool(
        name="send_message",
        says="Send a message to the chat at once, without waiting for the end of your turn: for"
        " progress, or for answers in several parts.",
        type="message",
        box=MESSAGES,
        parameters=(
            Parameter(name="text", says="The words, in Markdown.", is_required=True),
            Parameter(name="sender", says="Who speaks, such as 'Researcher'."),
            Parameter(
                name="target_jid",
                key="targetJid",
                says="Another chat's id. Main group only.",
                is_for_main=True,
            ),
            Parameter(
                name="file",
                says="A file to send along: a path below /workspace/group, or relative to it.",
            ),
        ),
    ),
    Tool(
        name=SCHEDULE_TASK,
        says="Schedule a task: a prompt that you are given when it is due, once or again and"
        " again. Your answer then goes to the chat. Returns the task's id.",
        parameters=(
            Parameter(name="prompt", says=_PROMPT, is_required=True),
            Parameter(name="schedule_type", says=_SCHEDULE_TYPE, is_required=True, choices=TYPES),
            Parameter(name="schedule_value", says=_SCHEDULE_VALUE, is_required=True),
            _HOW_IT_RUNS[0],
            Parameter(
                name="target_group_jid",
                key="targetJid",
                says="The chat of another group that the task is for. Main group only.",
                is_for_main=True,
            ),
            *_HOW_IT_RUNS[1:],
        ),
    ),
    Tool(
        name=LIST_TASKS,
        says="List the scheduled tasks: this group's, or in the main group everyone's.",
    ),
    Tool(name="pause_task", says="Pause a task until it is resumed.", parameters=(_TASK,)),
    Tool(
        name="resume_task",
        says="Resume a paused task: it is due again from now on.",
        parameters=(_TASK,),
    ),
    Tool(name="cancel_task", says="Delete a task and its history for good.", parameters=(_TASK,)),
    Tool(
        name=UPDATE_TASK,
        says="Change a task: whatever is given replaces what it had.",
        parameters=(
            _TASK,
            Parameter(name="prompt", says=_PROMPT),
            Parameter(name="schedule_type", says=_SCHEDULE_TYPE, choices=TYPES),
            Parameter(name="schedule_value", says=_SCHEDULE_VALUE),
            *_HOW_IT_RUNS,
        ),
    ),
    Tool(name="run_task", says="Run a task once now, beside its schedule.", parameters=(_TASK,)),
    Tool(
        name="register_group",
        says="Make a chat a group, with a folder and an agent of its own. Main group only. The"
        " chats that are known stand in /workspace/ipc/available_groups.json.",
        is_for_main=True,
        parameters=(
            Parameter(name="jid", says="The chat's id.", is_required=True),
            Parameter(name="name", says="The group's name, for people.", is_required=True),
            Parameter(
                name="folder",
                says="Its folder: letters, digits, hyphens and underscores, at most 64, the first a"
                " letter or digit.",
                pattern="[A-Za-z0-9][A-Za-z0-9_-]{0,63}",
                is_required=True,
            ),
            Parameter(
                name="trigger",
                says="What a message must begin with to wake the agent, such as '@Andy'.",
                is_required=True,
            ),
            Parameter(
                name="requires_trigger",
                key="requiresTrigger",
                says="false: every message wakes the agent. By default true.",
                is_flag=True,
            ),
            Parameter(
                name="assistant_name",
                key="assistantName",
                says="What the agent is called there; by default as everywhere.",
            ),
        ),
    ),
    Tool(
        name="refresh_groups",
        says="Have the host look again which chats there are. Main group only.",
        is_for_main=True,
    ),
)
TOOLS = {tool.name: tool for tool in _ALL}
