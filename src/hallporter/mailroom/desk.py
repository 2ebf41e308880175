"""One folder's requests: taken in order, at the folder's own pace."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.command import Box
from hallporter.mailroom.handling import read

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hallporter.domain.ids import Folder
    from hallporter.mailroom.claims import Claims
    from hallporter.mailroom.handling import Handling, Letter
    from hallporter.mailroom.pace import Pace
    from hallporter.ports import Clock

log = structlog.get_logger(__name__)

_BATCH = 50  # requests taken together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Post:
    """What one look has brought, and what is left to look at."""

    letters: Sequence[Letter]
    has_messages: bool = False
    is_more: bool = False


class Desk:
    """Works while something lies in the boxes; nobody works while nothing does."""

    def __init__(
        self,
        folder: Folder,
        *,
        claims: Claims,
        handling: Handling,
        tend: Callable[[Folder], Awaitable[None]],
        pace: Pace,
        clock: Clock,
    ) -> None:
        self._folder = folder
        self._claims = claims
        self._handling = handling
        self._tend = tend
        self._pace = pace
        self._clock = clock
        self._is_stirred = False
        self._is_asleep = False
        self._worker: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def stir(self, tasks: asyncio.TaskGroup | None) -> None:
        """Something may lie there; without a parent for the work it has to wait for one."""
        self._is_stirred = True
        if tasks is not None and self._worker is None:
            self._worker = tasks.create_task(self._work(), name=f"mail:{self._folder}")

    async def drained(self) -> None:
        """Until the messages that lie there now are carried out, or have to wait."""
        if self._worker is not None:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def retire(self) -> asyncio.Task[None] | None:
        """Whoever sleeps has nothing in hand; the others finish what they have."""
        self._is_stirred = False
        if self._worker is not None and self._is_asleep:
            self._worker.cancel()
        return self._worker

    async def _work(self) -> None:
        try:
            while self._is_stirred:
                self._is_stirred = False
                await self._keep_pace()
                waiting, self._waiting = self._waiting, []
                try:
                    post = await self._pass()
                finally:
                    self._waiting[:0] = waiting
                if not post.has_messages:
                    self._release(waiting)
                self._is_stirred |= post.is_more
        except Exception:  # the border of a folder: the next stir tries again
            log.exception("mail.broke", folder=self._folder)
        finally:
            self._worker = None
            self._release(list(self._waiting))

    async def _keep_pace(self) -> None:
        while self._pace.left() < 1:
            # R12 is for those who keep to the rate: nobody's answer waits for a flood.
            self._release(list(self._waiting))
            self._is_asleep = True
            try:
                await self._clock.sleep(self._pace.wait())
            finally:
                self._is_asleep = False

    async def _pass(self) -> _Post:
        await self._tend(self._folder)
        limit = min(self._pace.left(), _BATCH)
        post = await asyncio.to_thread(self._take, limit)
        # A look that finds nothing has its price too.
        self._pace.take(max(1, len(post.letters)))
        if post.letters:
            await self._handling.settle(post.letters)
        return post

    def _take(self, limit: int) -> _Post:
        letters: list[Letter] = []
        has_messages = is_more = False
        for box in (Box.MESSAGES, Box.TASKS):
            try:
                taken = self._claims.take(self._folder, box, limit - len(letters))
            except FileNotFoundError:
                continue  # the folder was purged
            except OSError as error:
                log.warning("mail.not_read", folder=self._folder, box=str(box), error=str(error))
                continue
            letters += map(read, taken.claims)
            has_messages |= taken.is_more and box is Box.MESSAGES
            is_more |= taken.is_more
        return _Post(letters=letters, has_messages=has_messages, is_more=is_more)

    def _release(self, waiting: Sequence[asyncio.Future[None]]) -> None:
        for turn in waiting:
            if turn in self._waiting:
                self._waiting.remove(turn)
            if not turn.done():
                turn.set_result(None)
