"""The turn itself: the agent gets the backlog, its blocks become replies, follow-ups go in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from structlog.contextvars import bound_contextvars

from hallporter.domain.brief import Block, Brief, Exit
from hallporter.domain.coverage import Coverage, exit_failed
from hallporter.domain.errors import (
    AgentFailedError,
    FencedError,
    HallporterError,
    RefusedError,
)
from hallporter.switchboard.clerk import Progress
from hallporter.switchboard.typing import typing

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.domain.brief import AgentSettings, LateBlock
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId
    from hallporter.domain.turn import Turn
    from hallporter.ports import Agent, Channel, Clock, Seat, Signals, Store
    from hallporter.switchboard.clerk import Clerk, Opened

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What an agent is told of the house it works for."""

    assistant_name: str
    timezone: str


class Exchange:
    """Runs one chat's turn; every step is written by the clerk before anything follows from it."""

    def __init__(
        self,
        *,
        store: Store,
        clerk: Clerk,
        agents: Callable[[str], Agent],
        agent_of: Callable[[Group], AgentSettings],
        channel_of: Callable[[ChatId], Channel | None],
        clock: Clock,
        house: House,
    ) -> None:
        self._store = store
        self._clerk = clerk
        self._agents = agents
        self._agent_of = agent_of
        self._channel_of = channel_of
        self._clock = clock
        self._house = house

    async def run(self, chat: ChatId, signals: Signals) -> None:
        """What the engine calls: one turn, from the claim to its end."""
        opened = await self._store.write(lambda tx: self._clerk.open(tx, chat))
        if opened is None:
            return
        with bound_contextvars(chat=chat, turn=opened.turn.id):
            log.info("turn.claimed", attempt=opened.turn.attempt, lines=len(opened.batch.lines))
            async with typing(self._channel_of(chat), chat, self._clock):
                await self._contained(opened, signals)

    async def late(self, block: LateBlock) -> None:
        """Words from an agent whose turn is over (R8)."""
        await self._store.write(lambda tx: self._clerk.late(tx, block))

    async def _contained(self, opened: Opened, signals: Signals) -> None:
        turn = opened.turn
        try:
            await self._converse(opened, signals)
        except FencedError:
            log.info("turn.fenced")  # stopped, or claimed by another host: its writes count
        except HallporterError as error:
            await self._fail(turn, error.message, is_refusal=isinstance(error, RefusedError))
        except Exception as error:  # the turn border: unknown trouble takes the ladder too
            log.exception("turn.broke")
            await self._fail(turn, f"an unexpected {type(error).__name__}", is_refusal=False)

    async def _converse(self, opened: Opened, signals: Signals) -> None:
        settings = self._agent_of(opened.group)
        agent = self._agents(settings.kind)
        brief = Brief(
            turn=opened.turn.id,
            chat=opened.turn.chat,
            group=opened.group,
            settings=settings,
            batch=opened.batch,
            epoch=opened.turn.epoch,
            attempt=opened.turn.attempt,
            session_no=opened.turn.session_no,
            session_id=opened.chat.session_id,
            assistant_name=self._house.assistant_name,
            now=self._clock.now(),
            timezone=self._house.timezone,
        )
        async with agent.seat(brief) as seat:
            try:
                async with asyncio.TaskGroup() as tasks:
                    signalled = self._heed(opened.turn, seat, signals)
                    heeding = tasks.create_task(signalled, name=f"heed:{opened.turn.chat}")
                    try:
                        await self._listen(opened.turn, seat, settings)
                    finally:
                        heeding.cancel()
            except BaseExceptionGroup as group:
                # Both tasks speak for one turn: the first trouble is the turn's trouble.
                seat.dismiss()
                trouble = group.exceptions[0]
                if isinstance(trouble, FencedError):
                    # The wish to stop can be overtaken by a block that no longer counts.
                    await seat.stop()
                raise trouble from None
            except BaseException:
                seat.dismiss()
                raise

    async def _listen(self, turn: Turn, seat: Seat, settings: AgentSettings) -> None:
        """Until the turn ends; the hard limit runs from the last block."""
        progress = Progress(covers=(turn.cursor, turn.cursor))
        limit = settings.timeout.total_seconds()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limit) as deadline:
                async for event in seat.events():
                    deadline.reschedule(loop.time() + limit)
                    match event:
                        case Block(is_error=True):
                            raise AgentFailedError(event.error or "the agent reported an error")
                        case Block():
                            log.debug("block.read", through=event.through, idle=event.idle)
                            progress, is_end = await self._write_block(turn, seat, event, progress)
                            if is_end:
                                return
                        case Exit():
                            await self._write_exit(turn, event, progress)
                            return
        except TimeoutError as error:
            message = f"no answer within {round(limit)} s"
            raise AgentFailedError(message) from error
        raise AgentFailedError("the agent is gone")

    async def _write_block(
        self, turn: Turn, seat: Seat, block: Block, progress: Progress
    ) -> tuple[Progress, bool]:
        written = await self._store.write(lambda tx: self._clerk.block(tx, turn, block, progress))
        log.info(
            "block.committed", through=block.through, is_end=written.is_end, number=progress.blocks
        )
        if not written.keeps_session:
            seat.dismiss()
        return written.progress, written.is_end

    async def _write_exit(self, turn: Turn, exit_: Exit, progress: Progress) -> None:
        coverage = Coverage(
            piped=exit_.taken, through=progress.covers[1], has_success=progress.has_success
        )
        if exit_failed(coverage, exit_.taken):
            raise AgentFailedError(exit_.why)
        await self._store.write(lambda tx: self._clerk.end(tx, turn, progress))
        log.info("turn.ended_by_exit", code=exit_.code)

    async def _heed(self, turn: Turn, seat: Seat, signals: Signals) -> None:
        """Follow-ups and the wish to stop, while the agent works."""
        while True:
            kinds = await signals.wait()
            if "stop" in kinds:
                await seat.stop()
                return
            if seat.takes_more:
                batch = await self._store.write(lambda tx: self._clerk.pipe(tx, turn))
                if batch is not None:
                    log.info("batch.piped", through=batch.through)
                    await seat.feed(batch)

    async def _fail(self, turn: Turn, why: str, *, is_refusal: bool) -> None:
        try:
            verdict = await self._store.write(
                lambda tx: self._clerk.fail(tx, turn, why, is_refusal=is_refusal)
            )
        except FencedError:
            log.info("turn.fenced")
            return
        log.warning("turn.failed", why=why, then=type(verdict).__name__)
