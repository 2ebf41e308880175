"""An agent that answers every batch at once, by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING

from hallporter.domain.brief import Block, Exit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hallporter.domain.brief import Batch, Brief
    from hallporter.domain.ids import ChatId


class EchoSeat:
    """`ports.Seat`: each batch becomes one block that lists the messages it was given."""

    takes_more = True

    def __init__(self, brief: Brief) -> None:
        self._batches: asyncio.Queue[Batch | None] = asyncio.Queue()
        self._batches.put_nowait(brief.batch)
        self._taken = 0

    async def events(self) -> AsyncIterator[Block | Exit]:
        while (batch := await self._batches.get()) is not None:
            self._taken = batch.through
            yield Block(
                is_error=False,
                text=" ".join(line.id for line in batch.lines),
                session_id=None,
                error="",
                through=batch.through,
                idle=self._batches.empty(),
            )
        yield Exit(code=130, taken=self._taken, why="it was stopped")

    async def feed(self, batch: Batch) -> bool:
        self._batches.put_nowait(batch)
        return True

    async def stop(self) -> None:
        self._batches.put_nowait(None)

    def dismiss(self) -> None:
        """There is no warm agent to send away."""


class EchoAgent:
    """`ports.Agent`; `live` counts the seats of each chat, `overlaps` those that were two."""

    def __init__(self) -> None:
        self.live: Counter[ChatId] = Counter()
        self.overlaps = 0
        self.turns = 0

    @contextlib.asynccontextmanager
    async def seat(self, brief: Brief) -> AsyncIterator[EchoSeat]:
        self.live[brief.chat] += 1
        self.overlaps += self.live[brief.chat] > 1
        self.turns += 1
        try:
            yield EchoSeat(brief)
        finally:
            self.live[brief.chat] -= 1

    async def forget(self, chat: ChatId) -> None:
        """Nobody is kept warm."""
