"""A chat with a folder, a trigger and an agent of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hallporter.domain.ids import ChatId, Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`agent` holds only what was set for this group; the rest comes from the settings."""

    chat: ChatId
    name: str
    folder: Folder
    trigger: str
    requires_trigger: bool
    is_main: bool
    added_at: datetime
    agent: Mapping[str, object] = field(default_factory=dict)
