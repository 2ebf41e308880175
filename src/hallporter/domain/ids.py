"""Names for things: each id is its own type, made in one place and parsed only by its owner."""

from __future__ import annotations

from typing import NewType, Protocol

ChatId = NewType("ChatId", str)
MessageId = NewType("MessageId", str)
TurnId = NewType("TurnId", str)
AgentId = NewType("AgentId", str)
TaskId = NewType("TaskId", str)
CommandId = NewType("CommandId", str)
EnclosureId = NewType("EnclosureId", str)
TokenId = NewType("TokenId", str)
SessionId = NewType("SessionId", str)
Folder = NewType("Folder", str)
Pool = NewType("Pool", str)

SANDBOXES = Pool("sandboxes")


class NewId(Protocol):
    """Makes a fresh id; `prefix` tells people what kind of thing it names."""

    def __call__(self, prefix: str) -> str: ...
