"""The web chat: our own network, whose messages are the rows of our own store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hallporter.domain.happening import TypingChanged
from hallporter.ports import Capabilities, Health

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.ids import ChatId
    from hallporter.ports import Feed, Switchboard

_CHAT = re.compile(r"web:[A-Za-z0-9._-]{1,64}")


class WebChat:
    """`ports.Channel`. People's words come in by the HTTP API, which hands them to the intake;
    ours are read from the store by whoever follows the chat."""

    def __init__(self, *, feed: Feed) -> None:
        self._feed = feed
        self._is_connected = False

    @property
    def name(self) -> str:
        return "web"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(limit=None, typing=True, takes_message_id=True, files=True)

    @property
    def http(self) -> ASGIApp | None:
        return None

    def owns(self, chat: ChatId) -> bool:
        return _CHAT.fullmatch(chat) is not None

    async def connect(self, switchboard: Switchboard) -> None:
        self._is_connected = True

    async def disconnect(self) -> None:
        self._is_connected = False

    def health(self) -> Health:
        return Health(ok=True) if self._is_connected else Health(ok=False, why="not connected")

    def compose(self, markdown: str) -> tuple[str, ...]:
        """Markdown is shown as it is, at any length."""
        return (markdown,)

    async def send(
        self, chat: ChatId, body: str, message_id: str, files: Sequence[Enclosure] = ()
    ) -> None:
        """Nothing is left to do: the row in the store is the delivery."""

    async def typing(self, chat: ChatId, *, is_typing: bool) -> None:
        self._feed.publish(TypingChanged(chat=chat, typing=is_typing))
