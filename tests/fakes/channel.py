"""A chat network in memory, with the troubles of a real one on request."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hallporter.channels.splitting import split
from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import ChannelDownError, MessageRefusedError
from hallporter.domain.message import Inbound
from hallporter.ports import Capabilities, Health

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.types import ASGIApp

    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.ids import ChatId
    from hallporter.ports import Switchboard


class FakeChannel:
    """`ports.Channel` for chats `fake:…`. `is_down`: the network is away; `refuses`: it never
    takes a body with these words; without `takes_message_id` it shows every repeat."""

    name = "fake"
    http: ASGIApp | None = None

    def __init__(
        self, *, takes_message_id: bool = True, limit: int | None = None, takes_files: bool = False
    ) -> None:
        self.capabilities = Capabilities(
            limit=limit, typing=True, takes_message_id=takes_message_id, files=takes_files
        )
        self.is_down = False
        self.refuses: str = ""
        self.sent: list[tuple[ChatId, str, str]] = []
        self.files: dict[str, Sequence[Enclosure]] = {}  # by the message they went along with
        self.typings: list[tuple[ChatId, bool]] = []
        self.switchboard: Switchboard | None = None
        self.discoverer: Callable[[], Awaitable[None]] | None = None

    def owns(self, chat: ChatId) -> bool:
        return chat.startswith("fake:")

    async def connect(self, switchboard: Switchboard) -> None:
        self.switchboard = switchboard

    async def disconnect(self) -> None:
        self.switchboard = None

    def health(self) -> Health:
        if self.switchboard is None:
            return Health(ok=False, why="not connected")
        return Health(ok=not self.is_down, why="the network is away" if self.is_down else "")

    def compose(self, markdown: str) -> tuple[str, ...]:
        limit = self.capabilities.limit
        return (markdown,) if limit is None else split(markdown, limit)

    async def send(
        self, chat: ChatId, body: str, message_id: str, files: Sequence[Enclosure] = ()
    ) -> None:
        if self.is_down:
            raise ChannelDownError("the network is away")
        if self.refuses and self.refuses in body:
            raise MessageRefusedError("the network refused it")
        is_known = any(known == message_id for _, _, known in self.sent)
        if not (self.capabilities.takes_message_id and is_known):
            self.sent.append((chat, body, message_id))
            self.files[message_id] = files

    async def typing(self, chat: ChatId, *, is_typing: bool) -> None:
        self.typings.append((chat, is_typing))

    async def refresh(self) -> None:
        """`ports.Refreshing`: `discoverer` is what the network knows of."""
        if self.discoverer is not None:
            await self.discoverer()

    async def hear(self, chat: ChatId, text: str) -> None:
        """Someone on the network says something."""
        if self.switchboard is None:
            raise ChannelDownError("not connected")
        at = datetime.now(UTC)
        await self.switchboard.on_chat(ChatSeen(chat=chat, channel=self.name, at=at))
        inbound = Inbound(
            chat=chat, ext_id="1", sender="ann", sender_name="Ann", text=text, sent_at=at
        )
        await self.switchboard.on_message(inbound)
