"""The chats that channels have met, registered or not: what main may choose from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.chat import Chat
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId, Folder


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownChat:
    """Of a chat that is not registered no more than this is known; only groups have a folder."""

    chat: ChatId
    name: str
    channel: str
    is_group: bool
    last_activity: datetime | None
    folder: Folder | None

    @property
    def is_registered(self) -> bool:
        """Whether it is a group of ours."""
        return self.folder is not None


def known_chats(tx: Tx) -> Sequence[KnownChat]:
    """All of them, the liveliest first."""
    groups = {group.chat: group for group in tx.groups.all()}
    known = [_known(chat, groups.get(chat.id)) for chat in tx.chats.all()]
    return sorted(known, key=_liveliness, reverse=True)


def own_chat(tx: Tx, group: Group) -> Sequence[KnownChat]:
    """What a group may know of chats when it is not main."""
    chat = tx.chats.get(group.chat)
    return [] if chat is None else [_known(chat, group)]


def _known(chat: Chat, group: Group | None) -> KnownChat:
    return KnownChat(
        chat=chat.id,
        name=chat.name or (group.name if group is not None else ""),
        channel=chat.channel,
        is_group=chat.is_group,
        last_activity=chat.seen_at,
        folder=None if group is None else group.folder,
    )


def _liveliness(chat: KnownChat) -> float:
    return 0.0 if chat.last_activity is None else chat.last_activity.timestamp()
