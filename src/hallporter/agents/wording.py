"""A brief in the words of the protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter_wire.follow_up import FollowUp, encode_follow_up
from hallporter_wire.prompt import (
    Context,
    Utterance,
    format_messages,
    format_prompt,
    format_task,
)
from hallporter_wire.stdin import AgentInput, encode_input

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.brief import Batch, Brief


def stdin_of(brief: Brief) -> bytes:
    """The one object an agent is started with."""
    batch, task = brief.batch, brief.task
    utterances = _utterances(batch)
    context = replace(_context(brief, batch, brief.now), sent=brief.sent)
    return encode_input(
        AgentInput(
            prompt=(
                format_prompt(utterances, context)
                if task is None
                else format_task(task.prompt, context)
            ),
            session_id=brief.session_id,
            group_folder=brief.group.folder,
            chat_jid=brief.chat,
            is_main=brief.group.is_main,
            is_scheduled_task=task is not None,
            assistant_name=brief.assistant_name,
            messages=tuple(format_messages(utterances)),
            tasks_snapshot=brief.snapshots.tasks,
            groups_snapshot=brief.snapshots.groups,
            task_context=None if task is None else task.prompt,
            through=batch.through,
        )
    )


def file_of(brief: Brief, batch: Batch, now: datetime) -> bytes:
    """A follow-up for an agent that runs already."""
    text = format_prompt(_utterances(batch), _context(brief, batch, now))
    content = "\n".join(line.text for line in batch.lines)
    return encode_follow_up(FollowUp(text=text, content=content, through=batch.through))


def _utterances(batch: Batch) -> list[Utterance]:
    return [
        Utterance(id=line.id, at=line.at, sender=line.sender, text=line.text)
        for line in batch.lines
    ]


def _context(brief: Brief, batch: Batch, now: datetime) -> Context:
    return Context(now=now, timezone=brief.timezone, attempt=brief.attempt, omitted=batch.omitted)
