"""What is told to those who watch, after it is committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

    from hallporter.domain.ids import ChatId, MessageId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStored:
    """There is something new to read in a chat."""

    chat: ChatId
    seq: int
    is_bot: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingChanged:
    """The agent began or ceased to work on an answer."""

    chat: ChatId
    typing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChanged:
    """`state`: started, answered, silent, failed, stopped; `waited`, `took`: for the figures."""

    chat: ChatId
    turn: TurnId
    state: str
    covers: tuple[MessageId, ...] = ()
    waited: timedelta | None = None
    took: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A row of the outbox reached its end."""

    chat: ChatId
    message: MessageId
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatForgotten:
    """All that was said in a chat until now is gone."""

    chat: ChatId


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChanged:
    """Someone may no longer read along, or nobody in some chat: every reader is to ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lagged:
    """The reader was too slow and missed something: read the store again."""


Happening = (
    MessageStored | TypingChanged | TurnChanged | Delivered | ChatForgotten | AccessChanged | Lagged
)
