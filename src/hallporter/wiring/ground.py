"""What every room stands on: the home, its settings, the time, the store, the channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentRefusedError
from hallporter.web.lobby import Answerer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.channels.webchat import WebChat
    from hallporter.clock import SystemClock
    from hallporter.domain.brief import AgentSettings
    from hallporter.domain.group import Group, SenderRule
    from hallporter.domain.ids import ChatId, NewId
    from hallporter.home import Home
    from hallporter.ports import Channel
    from hallporter.sandboxes.stock import Stock
    from hallporter.settings import Loaded, Settings
    from hallporter.stores.feed import MemoryFeed
    from hallporter.stores.sqlite import SqliteStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Made first, and handed to whoever is joined to the rest."""

    home: Home
    loaded: Loaded
    clock: SystemClock
    new_id: NewId
    feed: MemoryFeed
    store: SqliteStore
    webchat: WebChat
    channels: Sequence[Channel]
    stock: Stock

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def assistant_name(self) -> str:
        return self.settings.host.assistant_name

    @property
    def timezone(self) -> str:
        return self.settings.host.timezone

    def channel_of(self, chat: ChatId) -> Channel | None:
        return next((channel for channel in self.channels if channel.owns(chat)), None)

    def agent_of(self, group: Group) -> AgentSettings:
        return self.settings.agent_for(group.folder, group.agent)

    def kind_of(self, group: Group) -> str:
        return self.settings.kind_for(group.folder, group.agent)

    def senders_of(self, group: Group) -> SenderRule | None:
        return self.settings.senders_for(group.folder, group.senders)

    def answerer_of(self, group: Group) -> Answerer:
        """Who answers a group, and in what box that is here."""
        kind = self.kind_of(group)
        try:
            sandbox = self.stock.named(self.agent_of(group).sandbox).name
        except AgentRefusedError as error:
            return Answerer(kind=kind, sandbox="", problem=error.message)
        return Answerer(kind=kind, sandbox=sandbox)
