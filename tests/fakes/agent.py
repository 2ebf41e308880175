"""An agent whose words a test puts into its mouth."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from hallporter.domain.brief import Block, Exit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hallporter.domain.brief import Batch, Brief
    from hallporter.domain.ids import ChatId

PATIENCE = 5.0  # seconds


class ScriptedSeat:
    """`ports.Seat`: `say`, `fail` and `leave` are what the agent does."""

    def __init__(self, brief: Brief, *, takes_more: bool) -> None:
        self.brief = brief
        self.fed: list[Batch] = []
        self.is_dismissed = False
        self.is_stopped = False
        self.is_over = False
        self.takes_more = takes_more
        self._events: asyncio.Queue[Block | Exit] = asyncio.Queue()
        self._was_fed = asyncio.Event()
        self._is_gone = False

    @property
    def given(self) -> int:
        return self.fed[-1].through if self.fed else self.brief.batch.through

    def texts(self) -> list[str]:
        batches = [self.brief.batch, *self.fed]
        return [line.text for batch in batches for line in batch.lines]

    def say(
        self,
        text: str | None,
        *,
        through: int | None = None,
        idle: bool = True,
        session: str | None = None,
    ) -> None:
        self._events.put_nowait(
            Block(
                is_error=False,
                text=text,
                session_id=session,
                error="",
                through=self.given if through is None else through,
                idle=idle,
            )
        )

    def fail(self, why: str) -> None:
        self._events.put_nowait(
            Block(is_error=True, text=None, session_id=None, error=why, through=0, idle=False)
        )

    def leave(self, code: int = 0, *, taken: int | None = None) -> None:
        taken = self.given if taken is None else taken
        self._events.put_nowait(Exit(code=code, taken=taken, why=f"the agent ended ({code})"))

    async def wait_fed(self, count: int = 1) -> Batch:
        async with asyncio.timeout(PATIENCE):
            while len(self.fed) < count:
                self._was_fed.clear()
                await self._was_fed.wait()
        return self.fed[count - 1]

    # --- ports.Seat ---

    def events(self) -> ScriptedSeat:
        return self

    def __aiter__(self) -> ScriptedSeat:
        return self

    async def __anext__(self) -> Block | Exit:
        if self._is_gone:
            raise StopAsyncIteration
        event = await self._events.get()
        self._is_gone = isinstance(event, Exit)
        return event

    async def feed(self, batch: Batch) -> bool:
        self.fed.append(batch)
        self._was_fed.set()
        return True

    async def stop(self) -> None:
        self.is_stopped = True
        self.leave(130)

    def dismiss(self) -> None:
        self.is_dismissed = True


class ScriptedAgent:
    """`ports.Agent`; `trouble` is raised instead of a seat."""

    def __init__(self) -> None:
        self.seats: list[ScriptedSeat] = []
        self.forgotten: list[ChatId] = []
        self.trouble: Exception | None = None
        self.takes_more = True
        self.live = 0
        self.most_live = 0
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def seat(self, brief: Brief) -> AsyncIterator[ScriptedSeat]:
        seat = ScriptedSeat(brief, takes_more=self.takes_more)
        self.seats.append(seat)
        self._changed.set()
        if self.trouble is not None:
            raise self.trouble
        self.live += 1
        self.most_live = max(self.most_live, self.live)
        try:
            yield seat
        finally:
            self.live -= 1
            seat.is_over = True
            self._changed.set()

    async def forget(self, chat: ChatId) -> None:
        self.forgotten.append(chat)

    async def seated(self, count: int = 1) -> ScriptedSeat:
        """The count-th turn's seat, once it is there."""
        await self._until(lambda: len(self.seats) >= count)
        return self.seats[count - 1]

    async def over(self, seat: ScriptedSeat) -> None:
        await self._until(lambda: seat.is_over)

    async def _until(self, condition: object) -> None:
        assert callable(condition)
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()
