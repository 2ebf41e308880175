"""Messages as HTML for pages and their events: each is set once, however many read it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.domain.message import Message

_SET_AT_ONCE = 200  # characters
_KEPT = 4_000_000  # characters of what was set, for those who read the same a moment later


class Typesetter:
    """`article` gives a message's HTML; it may run in a thread."""

    def __init__(self, article: Callable[[Message], str]) -> None:
        self._article = article
        self._set: dict[Message, str] = {}  # the oldest first
        self._busy: WeakValueDictionary[Message, asyncio.Lock] = WeakValueDictionary()
        self.kept = 0

    async def event(self, message: Message) -> str:
        """The `data:` of one message, on one line."""
        html = await self.html(message)
        return json.dumps({"id": message.id, "seq": message.seq, "html": html})

    async def html(self, message: Message) -> str:
        """One message, as it stands in the log."""
        # One at a time for each message: those who wait find it set.
        lock = self._busy.setdefault(message, asyncio.Lock())
        async with lock:
            if (html := self._set.get(message)) is None:
                html = await self._spell(message)
                self._keep(message, html)
            return html

    async def _spell(self, message: Message) -> str:
        # A long text takes a while to set, and the others' streams must not wait for it.
        is_long = len(message.text) > _SET_AT_ONCE
        article = self._article
        return await asyncio.to_thread(article, message) if is_long else article(message)

    def _keep(self, message: Message, html: str) -> None:
        self._set[message] = html
        self.kept += len(html)
        while self.kept > _KEPT and len(self._set) > 1:
            oldest = next(iter(self._set))
            self.kept -= len(self._set.pop(oldest))
