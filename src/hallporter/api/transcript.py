"""Messages, turns and fates as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.fate import Fate
    from hallporter.domain.ids import ChatId
    from hallporter.domain.message import Message


def _is_none(value: object) -> bool:
    return value is None  # a key that says nothing is left out


class FileJson(BaseModel):
    """A file that goes along with a message."""

    id: str
    name: str = Field(description="As its sender calls it.")
    size: int = Field(description="Bytes.")
    type: str = Field(description="What the name's ending says, and nobody has checked.")
    url: str = Field(description="Where it is, by the same token.")


class MessageJson(BaseModel):
    """One message, by a person or by us."""

    id: str
    chat: str
    sender: str = Field(description="How the speaker is shown.")
    text: str = Field(description="Markdown.")
    at: datetime = Field(description="When it was stored, UTC.")
    is_bot: bool = Field(description="Whether we said it: the agent, or the host itself.")
    turn: str | None = Field(
        None, exclude_if=_is_none, description="The turn that answers it, or that made it."
    )
    files: list[FileJson] | None = Field(
        None, exclude_if=_is_none, description="What goes along with it."
    )


class MessagesJson(BaseModel):
    """A page of a chat, oldest first."""

    messages: list[MessageJson]
    next: str | None = Field(description="`after` for the next page; null at the end.")


class StepJson(BaseModel):
    """One thing that happened."""

    at: datetime
    what: str
    why: str | None = Field(None, exclude_if=_is_none)


class TurnJson(BaseModel):
    """The newest turn that was given the message, or that made it."""

    id: str
    state: str = Field(
        description="`running`, `answered`, `silent`, `failed`, `stopped` or `interrupted`."
    )
    why: str | None = Field(None, exclude_if=_is_none)


class FateJson(BaseModel):
    """What became of a message, step by step."""

    id: str
    chat: str
    state: str = Field(
        description="Of a person's message: `unregistered`, `ignored`, `waiting` (for a trigger),"
        " `queued`, `running`, `answered`, `silent`, `command`, `stopped`, `omitted`, `failed` or"
        " `gave_up`. Of ours: `pending`, `sending`, `sent` or `undeliverable`."
    )
    steps: list[StepJson]
    replies: list[str] = Field(description="The ids of what was said to it.")
    message: MessageJson
    said: list[MessageJson] = Field(
        description="The replies themselves, and what the host told meanwhile."
    )
    turn: TurnJson | None = Field(None, exclude_if=_is_none)
    retry_at: datetime | None = Field(
        None,
        exclude_if=_is_none,
        description="When a `failed` one comes again by itself; without it the next message tries.",
    )
    others: list[str] | None = Field(
        None,
        exclude_if=_is_none,
        description="Further messages that the network gave the same id.",
    )


def message_json(message: Message) -> MessageJson:
    return MessageJson(
        id=message.id,
        chat=message.chat,
        sender=message.sender_name,
        text=message.text,
        at=message.at,
        is_bot=message.is_bot,
        turn=message.turn,
        files=[_file_json(message.chat, file) for file in message.files] or None,
    )


def _file_json(chat: ChatId, file: Enclosure) -> FileJson:
    url = f"/api/chats/{quote(chat, safe=':@')}/files/{file.id}"
    return FileJson(id=file.id, name=file.name, size=file.size, type=file.type, url=url)


def fate_json(fate: Fate, others: Sequence[Fate]) -> FateJson:
    turn = None
    if fate.turn is not None:
        state = "running" if fate.turn.outcome is None else str(fate.turn.outcome)
        turn = TurnJson(id=fate.turn.id, state=state, why=fate.turn.why or None)
    return FateJson(
        id=fate.message.id,
        chat=fate.message.chat,
        state=fate.state,
        steps=[StepJson(at=step.at, what=step.what, why=step.why or None) for step in fate.steps],
        replies=list(fate.replies),
        message=message_json(fate.message),
        said=[message_json(reply) for reply in fate.said],
        turn=turn,
        retry_at=fate.retry_at,
        others=[other.message.id for other in others] or None,
    )
