"""What is on its way out: a text composed once into parts, each with an id chosen by us."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.ids import ChatId, MessageId


class Delivery(StrEnum):
    """How far a row, or one of its parts, has come."""

    PENDING = "pending"
    SENDING = "sending"  # written before a send that the network cannot recognise as a repeat
    SENT = "sent"
    UNDELIVERABLE = "undeliverable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """As much as one network message takes."""

    body: str
    message_id: str
    files: tuple[Enclosure, ...] = ()
    state: Delivery = Delivery.PENDING
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """`key` is unique: `turn:…`, `cmd:…`, `notice:…`, `late:…`; writing it twice is harmless."""

    number: int
    key: str
    chat: ChatId
    message: MessageId  # its row in the transcript
    at: datetime
    parts: tuple[Part, ...]
    state: Delivery = Delivery.PENDING
    why: str = ""
