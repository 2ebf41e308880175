"""One utterance in a chat, by a person or by us, and the states it can be in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.ids import ChatId, MessageId, TurnId


class Kind(StrEnum):
    """Who speaks, and to whom."""

    TEXT = "text"  # a person, to the agent
    COMMAND = "command"  # a person, to the host (a slash line); never in a prompt
    REPLY = "reply"  # the agent
    NOTICE = "notice"  # the host


class State(StrEnum):
    """What has become of a person's message so far; the public names of a fate."""

    UNREGISTERED = "unregistered"
    IGNORED = "ignored"
    WAITING = "waiting"  # for a trigger
    QUEUED = "queued"
    RUNNING = "running"
    ANSWERED = "answered"
    SILENT = "silent"
    COMMAND = "command"
    STOPPED = "stopped"
    OMITTED = "omitted"
    FAILED = "failed"  # comes again: after the backoff, or with the chat's next message
    GAVE_UP = "gave_up"


OPEN_STATES = (State.WAITING, State.QUEUED, State.RUNNING, State.FAILED)
"""States of a message that an agent may still be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """As a channel hands it in; `sender` is who speaks, `sender_name` how they are shown."""

    chat: ChatId
    ext_id: str
    sender: str
    sender_name: str
    text: str
    sent_at: datetime
    mentions_us: bool = False
    preferred_id: MessageId | None = None  # where the network's ids are ours to choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A stored message; `seq` is its place in its chat."""

    id: MessageId
    chat: ChatId
    seq: int
    ext_id: str
    sender: str
    sender_name: str
    text: str
    at: datetime
    kind: Kind
    wakes: bool = False
    why: str = ""
    state: State | None = None  # of a person's message; ours have the outbox's
    turn: TurnId | None = None  # that covered it, or that made it
    covers_after: int | None = None  # a reply answers those in (covers_after, covers_through]
    covers_through: int | None = None
    files: tuple[Enclosure, ...] = ()

    @property
    def is_bot(self) -> bool:
        """Whether we said it."""
        return self.kind in (Kind.REPLY, Kind.NOTICE)
