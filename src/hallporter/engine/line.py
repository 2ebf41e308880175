"""The line of waiting chats: per pool, longest wait first, those in backoff aside."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hallporter.domain.chat import Chat
    from hallporter.domain.ids import ChatId, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A chat that wants a turn."""

    chat: ChatId
    pool: Pool
    since: datetime
    not_before: datetime | None


def place_of(chat: Chat) -> Waiting | None:
    """Where a chat's row puts it: a tick takes no heed of the backlog's backoff, and a backlog that
    has waited longer than the tick keeps its place for both."""
    woken_at, not_before, since = chat.woken_at, chat.not_before, chat.due_at
    if since is None:
        since = woken_at
    else:
        if woken_at is not None and not_before is None:
            since = min(since, woken_at)
        not_before = None
    if since is None:
        return None
    return Waiting(chat=chat.id, pool=chat.pool, since=since, not_before=not_before)


class Line:
    """Entries that were replaced or removed stay in the heaps and are skipped when they surface."""

    def __init__(self) -> None:
        self._waiting: dict[ChatId, Waiting] = {}
        self._ready: dict[Pool, list[tuple[datetime, int, Waiting]]] = {}
        self._later: list[tuple[datetime, int, Waiting]] = []
        self._count = itertools.count()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, chat: ChatId) -> bool:
        return chat in self._waiting

    def join(self, entry: Waiting) -> None:
        """Take a place, or change the one a chat has."""
        if self._waiting.get(entry.chat) == entry:
            return
        self._waiting[entry.chat] = entry
        if entry.not_before is not None:
            heapq.heappush(self._later, (entry.not_before, next(self._count), entry))
        else:
            self._make_ready(entry)

    def take(self, now: datetime, has_room: Callable[[Pool], bool]) -> Waiting | None:
        """The longest waiting chat whose pool has room, out of the line."""
        self._ripen(now)
        best: tuple[datetime, int, Waiting] | None = None
        for pool in list(self._ready):
            heap = self._ready[pool]
            while heap and self._waiting.get(heap[0][2].chat) is not heap[0][2]:
                heapq.heappop(heap)
            if not heap:
                del self._ready[pool]
            elif has_room(pool) and (best is None or heap[0][:2] < best[:2]):
                best = heap[0]
        if best is None:
            return None
        heapq.heappop(self._ready[best[2].pool])
        del self._waiting[best[2].chat]
        return best[2]

    def next_ripe(self) -> datetime | None:
        """When the next chat leaves its backoff."""
        while self._later and self._waiting.get(self._later[0][2].chat) is not self._later[0][2]:
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None

    def oldest(self) -> datetime | None:
        """Since when the first in line has waited."""
        # Copied first: it is also asked from the store's thread, while chats come and go.
        return min((entry.since for entry in list(self._waiting.values())), default=None)

    def _ripen(self, now: datetime) -> None:
        while (ripe := self.next_ripe()) is not None and ripe <= now:
            self._make_ready(heapq.heappop(self._later)[2])

    def _make_ready(self, entry: Waiting) -> None:
        heap = self._ready.setdefault(entry.pool, [])
        heapq.heappush(heap, (entry.since, next(self._count), entry))
