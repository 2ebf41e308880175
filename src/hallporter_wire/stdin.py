"""What an agent program is started with: one JSON object, then the end of stdin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hallporter_wire.errors import WireError
from hallporter_wire.fields import Fields, encode, present

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_ASSISTANT_NAME = "Andy"  # the documents' own; 001 lets a host leave the name out


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInput:
    """The fields of both dialects; `through` is the highest sequence number in the prompt (R2)."""

    prompt: str
    session_id: str | None = None
    group_folder: str
    chat_jid: str
    is_main: bool
    is_scheduled_task: bool = False
    assistant_name: str = DEFAULT_ASSISTANT_NAME
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    messages: tuple[str, ...] = ()
    tasks_snapshot: str | None = None
    groups_snapshot: str | None = None
    task_context: str | None = None
    through: int | None = None


def encode_input(agent_input: AgentInput) -> bytes:
    """One object that a program of either dialect can read."""
    return encode(
        present(
            {
                "prompt": agent_input.prompt,
                "sessionId": agent_input.session_id,
                "groupFolder": agent_input.group_folder,
                "chatJid": agent_input.chat_jid,
                "isMain": agent_input.is_main,
                "isScheduledTask": agent_input.is_scheduled_task,
                "assistantName": agent_input.assistant_name,
                "secrets": dict(agent_input.secrets),
                "messages": list(agent_input.messages),
                "tasksSnapshot": agent_input.tasks_snapshot,
                "groupsSnapshot": agent_input.groups_snapshot,
                "isTask": agent_input.is_scheduled_task,
                "taskContext": agent_input.task_context,
                "through": agent_input.through,
            }
        )
    )


def decode_input(data: bytes) -> AgentInput:
    """Read either dialect; raises WireError that names the field at fault."""
    fields = Fields(data)
    is_task = bool(fields.flag("isScheduledTask") or fields.flag("isTask"))
    messages = fields.texts("messages")
    task_context = fields.text("taskContext")
    prompt = fields.text("prompt")
    if prompt is None:
        prompt = _prompt_of_000(messages, task_context if is_task else None)
    return AgentInput(
        prompt=prompt,
        session_id=fields.text("sessionId"),
        group_folder=fields.required_text("groupFolder"),
        chat_jid=fields.required_text("chatJid"),
        # 000 has no such flag: whoever is not called main has no privilege.
        is_main=bool(fields.flag("isMain")),
        is_scheduled_task=is_task,
        assistant_name=fields.text("assistantName") or DEFAULT_ASSISTANT_NAME,
        secrets=fields.text_map("secrets"),
        messages=messages,
        tasks_snapshot=fields.text("tasksSnapshot"),
        groups_snapshot=fields.text("groupsSnapshot"),
        task_context=task_context,
        through=fields.number("through"),
    )


def _prompt_of_000(messages: tuple[str, ...], task_context: str | None) -> str:
    if task_context is not None:
        return task_context
    if not messages:
        raise WireError("is missing, and there are no messages to build it from", field="prompt")
    return "\n".join(["<messages>", *messages, "</messages>"])
