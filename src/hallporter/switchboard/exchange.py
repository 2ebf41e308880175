"""The turn itself: the agent gets the backlog, its blocks become replies, follow-ups go in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
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
from hallporter.switchboard.progress import Progress
from hallporter.switchboard.typing import typing

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.domain.brief import AgentSettings, LateBlock
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId
    from hallporter.domain.turn import Turn
    from hallporter.ports import Agent, Channel, Clock, Mail, Seat, Signals, Store
    from hallporter.switchboard.clerk import Clerk
    from hallporter.switchboard.progress import Opened, Written

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
        mail: Mail,
        clock: Clock,
        house: House,
    ) -> None:
        self._store = store
        self._clerk = clerk
        self._agents = agents
        self._agent_of = agent_of
        self._channel_of = channel_of
        self._mail = mail
        self._clock = clock
        self._house = house

    async def run(self, chat: ChatId, signals: Signals) -> None:
        """What the engine calls: one turn, from the claim to its end."""
        opened = await self._store.write(lambda tx: self._clerk.open(tx, chat))
        if opened is None:
            return
        with bound_contextvars(chat=chat, turn=opened.turn.id):
            log.info(
                "turn.claimed",
                attempt=opened.turn.attempt,
                lines=len(opened.batch.lines),
                task=opened.turn.task,
            )
            # Nobody waits for what a task says, if it says anything at all.
            channel = self._channel_of(chat) if opened.task is None else None
            async with typing(channel, chat, self._clock):
                await self._contained(opened, signals)

    async def late(self, block: LateBlock) -> None:
        """Words from an agent whose turn is over (R8)."""
        group = await self._store.read(lambda tx: tx.groups.of_chat(block.chat))
        if group is not None:
            await self._mail.drain(group)
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
        async with agent.seat(await self._brief(opened, settings)) as seat:
            try:
                async with asyncio.TaskGroup() as tasks:
                    signalled = self._heed(opened, seat, signals)
                    heeding = tasks.create_task(signalled, name=f"heed:{opened.turn.chat}")
                    try:
                        await self._listen(opened, seat, settings)
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

    async def _brief(self, opened: Opened, settings: AgentSettings) -> Brief:
        turn = opened.turn
        return Brief(
            turn=turn.id,
            chat=turn.chat,
            group=opened.group,
            settings=settings,
            batch=opened.batch,
            epoch=turn.epoch,
            attempt=turn.attempt,
            session_no=turn.session_no,
            session_id=None if opened.is_isolated else opened.chat.session_id,
            assistant_name=opened.group.assistant_name or self._house.assistant_name,
            now=self._clock.now(),
            timezone=self._house.timezone,
            task=opened.task,
            snapshots=await self._mail.announce(opened.group),
            sent=opened.sent,
        )

    async def _listen(self, opened: Opened, seat: Seat, settings: AgentSettings) -> None:
        """Until the turn ends; the hard limit runs from the last block."""
        cursor = opened.turn.cursor
        progress = Progress(covers=(cursor, cursor))
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
                            written = await self._write_block(opened, event, progress)
                            progress = written.progress
                            if not written.keeps_session:
                                seat.dismiss()
                            if written.is_end:
                                return
                        case Exit():
                            await self._write_exit(opened, event, progress)
                            return
        except TimeoutError as error:
            message = f"no answer within {round(limit)} s"
            raise AgentFailedError(message) from error
        raise AgentFailedError("the agent is gone")

    async def _write_block(self, opened: Opened, block: Block, progress: Progress) -> Written:
        turn = opened.turn
        if opened.is_isolated:
            block = replace(block, session_id=None)
        await self._mail.drain(opened.group)  # R12: what it sent first arrives first
        written = await self._store.write(lambda tx: self._clerk.block(tx, turn, block, progress))
        log.info(
            "block.committed", through=block.through, is_end=written.is_end, number=progress.blocks
        )
        return written

    async def _write_exit(self, opened: Opened, exit_: Exit, progress: Progress) -> None:
        await self._mail.drain(opened.group)
        coverage = Coverage(
            piped=exit_.taken, through=progress.covers[1], has_success=progress.has_success
        )
        if exit_failed(coverage, exit_.taken):
            raise AgentFailedError(exit_.why)
        await self._store.write(lambda tx: self._clerk.end(tx, opened.turn, progress))
        log.info("turn.ended_by_exit", code=exit_.code)

    async def _heed(self, opened: Opened, seat: Seat, signals: Signals) -> None:
        """Follow-ups and the wish to stop, while the agent works."""
        while True:
            kinds = await signals.wait()
            if "stop" in kinds:
                await seat.stop()
                return
            if seat.takes_more and opened.task is None:
                batch = await self._store.write(lambda tx: self._clerk.pipe(tx, opened.turn))
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
