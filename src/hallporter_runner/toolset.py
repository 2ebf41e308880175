"""The host's tools in an agent's hand: a call is checked, posted, and its result put into words."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hallporter_runner.mail import MailError, UnansweredError
from hallporter_runner.tools import LIST_TASKS, SCHEDULE_TASK, TOOLS, ToolError, request_of
from hallporter_wire.snapshots import AVAILABLE_GROUPS, CURRENT_TASKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter_runner.mail import Mail

_EXCERPT = 50  # characters of a prompt
_DONE = {
    "send_message": "Sent.",
    "pause_task": "{task} is paused.",
    "resume_task": "{task} runs again.",
    "cancel_task": "{task} is cancelled.",
    "update_task": "{task} is changed.",
    "run_task": "{task} runs now.",
    "register_group": "{name} is registered in the folder {folder}.",
    "refresh_groups": "The host has looked again; available_groups.json lists the chats.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call gives: words for whoever reads, and data for whoever reckons."""

    text: str
    data: Mapping[str, object] = field(default_factory=dict)


class Toolset:
    """The tools of one agent. Without knowing whether it `is_main` it leaves that to the host."""

    def __init__(self, mail: Mail, *, is_main: bool | None) -> None:
        self._mail = mail
        self._is_main = is_main

    def call(self, name: str, arguments: Mapping[str, object]) -> Outcome:
        """Carry a call out; raises ToolError that says why not, in the host's words if it refused.

        Returns or raises within the time that the mail waits.
        """
        tool = TOOLS.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name!r}; there are {', '.join(TOOLS)}")
        request = request_of(tool, arguments, is_main=self._is_main)
        if name == LIST_TASKS:
            tasks = self.tasks()
            return Outcome(text=_listing(tasks), data={"tasks": tasks})
        if name == SCHEDULE_TASK:
            # Made here, so that the agent knows it even when the answer is late.
            request["taskId"] = f"task-{os.urandom(5).hex()}"
        try:
            told = self._mail.post(tool.box, request)
        except UnansweredError as error:
            known_as = f", as {request['taskId']}" if name == SCHEDULE_TASK else ""
            raise ToolError(f"{error}{known_as}") from error
        except MailError as error:
            raise ToolError(str(error)) from error
        return _outcome(name, request, told)

    def tasks(self) -> list[dict[str, object]]:
        """The tasks this agent may see, as the host last wrote them down."""
        return _objects(self._snapshot(CURRENT_TASKS))

    def groups(self) -> list[dict[str, object]]:
        """The chats this agent may see, likewise."""
        snapshot = self._snapshot(AVAILABLE_GROUPS)
        return _objects(snapshot.get("groups") if isinstance(snapshot, dict) else snapshot)

    def _snapshot(self, name: str) -> object:
        try:
            return self._mail.snapshot(name)
        except MailError as error:
            raise ToolError(str(error)) from error


def _objects(value: object) -> list[dict[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _outcome(name: str, request: Mapping[str, object], told: Mapping[str, object]) -> Outcome:
    # The host spells each detail in both dialects; the tools speak one.
    data = {key: value for key, value in told.items() if key.islower()}
    if name == SCHEDULE_TASK:
        next_run = data.get("next_run")
        due = f"; it is due at {next_run}" if next_run else ""
        text = f"Scheduled as {request['taskId']}{due}."
        return Outcome(text=text, data={**data, "task_id": request["taskId"]})
    if data.get("sent") is False:
        return Outcome(text="Nothing was sent: no words were left for the chat.", data=data)
    return Outcome(
        text=_DONE[name].format_map({"task": request.get("taskId"), **request}), data=data
    )


def _listing(tasks: list[dict[str, object]]) -> str:
    if not tasks:
        return "There are no tasks."
    return "\n".join(["Tasks:", *map(_line, tasks)])


def _line(task: Mapping[str, object]) -> str:
    prompt = " ".join(str(task.get("prompt", "")).split())
    excerpt = prompt if len(prompt) <= _EXCERPT else f"{prompt[:_EXCERPT]}…"
    schedule = f"{task.get('schedule_type')} {task.get('schedule_value')}"
    zone = f" {task['timezone']}" if task.get("timezone") else ""
    next_run = f", next run {task['next_run']}" if task.get("next_run") else ""
    return f"- {task.get('id')}: {excerpt} ({schedule}{zone}; {task.get('status')}{next_run})"
