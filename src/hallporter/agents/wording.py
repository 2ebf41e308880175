"""A brief in the words of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter_wire.follow_up import FollowUp, encode_follow_up
from hallporter_wire.prompt import Context, Utterance, format_messages, format_prompt
from hallporter_wire.stdin import AgentInput, encode_input

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.brief import Batch, Brief


def stdin_of(brief: Brief) -> bytes:
    """The one object an agent is started with."""
    batch = brief.batch
    utterances = _utterances(batch)
    return encode_input(
        AgentInput(
            prompt=format_prompt(utterances, _context(brief, batch, brief.now)),
            session_id=brief.session_id,
            group_folder=brief.group.folder,
            chat_jid=brief.chat,
            is_main=brief.group.is_main,
            assistant_name=brief.assistant_name,
            messages=tuple(format_messages(utterances)),
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
