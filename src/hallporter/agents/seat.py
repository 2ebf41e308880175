"""One agent during one turn, as the exchange sees it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.brief import Exit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hallporter.agents.live import LiveAgent
    from hallporter.domain.brief import Batch, Block, Brief


class SandboxedSeat:
    """`ports.Seat`: one agent during one turn, replaced once if a warm one turns out dead."""

    def __init__(
        self,
        agent: LiveAgent,
        brief: Brief,
        *,
        is_warm: bool,
        start_anew: Callable[[Brief], Awaitable[LiveAgent]],
    ) -> None:
        self.agent = agent
        self.is_dismissed = False
        self._brief = brief
        self._is_warm = is_warm
        self._start_anew = start_anew
        self._is_over = False
        self._lock = asyncio.Lock()

    @property
    def takes_more(self) -> bool:
        return self.agent.speaks_through

    def events(self) -> SandboxedSeat:
        return self

    def __aiter__(self) -> SandboxedSeat:
        return self

    async def __anext__(self) -> Block | Exit:
        if self._is_over:
            raise StopAsyncIteration
        event = await self.agent.next_event()
        if self._is_warm and isinstance(event, Exit) and event.taken == 0:
            # R9: it died before it took up its file: no failure, a fresh one at once.
            async with self._lock:
                self._is_warm = False
                self.agent = await self._start_anew(self._brief)
            event = await self.agent.next_event()
        self._is_warm = False
        self._is_over = isinstance(event, Exit)
        return event

    async def feed(self, batch: Batch) -> bool:
        async with self._lock:
            # Kept also when it cannot be given: a fresh agent gets all of it.
            self._brief = replace(self._brief, batch=_joined(self._brief.batch, batch))
            return self.agent.give(batch)

    async def stop(self) -> None:
        self._is_warm = False  # its exit is wanted: nobody takes its place
        async with self._lock:
            await self.agent.stop()

    def dismiss(self) -> None:
        self.is_dismissed = True


def _joined(first: Batch, second: Batch) -> Batch:
    return replace(second, lines=first.lines + second.lines, omitted=first.omitted + second.omitted)
