"""A chat with a folder, a trigger and an agent of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hallporter.domain.ids import ChatId, Folder


class Others(StrEnum):
    """What happens to the words of people who are not on a group's list."""

    IGNORE = "ignore"  # not kept
    STORE = "store"  # kept, and go along with the words of those who are


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderRule:
    """Whose words count in a group; an empty list means nobody's."""

    allow: frozenset[str]
    others: Others = Others.IGNORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`agent` holds only what was set for this group; the rest comes from the settings. Without a
    sender rule everyone in the chat may talk; without an own name the assistant has the house's."""

    chat: ChatId
    name: str
    folder: Folder
    trigger: str
    requires_trigger: bool
    is_main: bool
    added_at: datetime
    agent: Mapping[str, object] = field(default_factory=dict)
    assistant_name: str | None = None
    senders: SenderRule | None = None
