"""Messages as events for open pages: each is set once, however many read along."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.domain.message import Message

_SET_AT_ONCE = 500  # characters
_KEPT = 2_000_000  # characters of what was set, for those who read the same a moment later


class Typesetter:
    """`article` gives a message's HTML; it may run in a thread."""

    def __init__(self, article: Callable[[Message], str]) -> None:
        self._article = article
        self._set: dict[Message, str] = {}  # the oldest first
        self._busy: WeakValueDictionary[Message, asyncio.Lock] = WeakValueDictionary()
        self.kept = 0

    async def event(self, message: Message) -> str:
        """The `data:` of one message, on one line."""
        # One at a time for each message: those who wait find it set.
        lock = self._busy.setdefault(message, asyncio.Lock())
        async with lock:
            if message not in self._set:
                self._keep(message, await self._spell(message))
            return self._set[message]

    async def _spell(self, message: Message) -> str:
        # A long text takes a while to set, and the others' streams must not wait for it.
        is_long = len(message.text) > _SET_AT_ONCE
        article = self._article
        html = await asyncio.to_thread(article, message) if is_long else article(message)
        return json.dumps({"id": message.id, "seq": message.seq, "html": html})

    def _keep(self, message: Message, event: str) -> None:
        self._set[message] = event
        self.kept += len(event)
        while self.kept > _KEPT and len(self._set) > 1:
            oldest = next(iter(self._set))
            self.kept -= len(self._set.pop(oldest))
