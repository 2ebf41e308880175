"""Agents in sandboxes: at most one per folder, never more than there is room for, kept warm."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import structlog

from hallporter.agents.launching import COMMAND, extras, launch_of, lay_out
from hallporter.agents.live import LiveAgent, Patience, Warm
from hallporter.agents.seat import SandboxedSeat
from hallporter.agents.workspace import extra_mount
from hallporter.domain.errors import AgentFailedError, AgentRefusedError, FencedError
from hallporter.domain.ids import AgentId
from hallporter.switchboard.status import LiveAgentInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from hallporter.agents.launching import Equipment
    from hallporter.domain.brief import Brief, LateBlock, Mount
    from hallporter.domain.ids import ChatId, Folder
    from hallporter.ports import Clock, Sandbox

log = structlog.get_logger(__name__)


class SandboxedAgents:
    """`ports.Agent` for every kind that runs as a program in a box."""

    def __init__(
        self,
        *,
        sandbox_for: Callable[[str], Sandbox],
        equipment: Equipment,
        clock: Clock,
        max_live: int,
        on_late: Callable[[LateBlock], Awaitable[None]],
        patience: Patience | None = None,
    ) -> None:
        self._sandbox_for = sandbox_for
        self._equipment = equipment
        self._clock = clock
        self._max_live = max_live
        self._on_late = on_late
        self._patience = patience or Patience()
        self._live: dict[Folder, LiveAgent] = {}
        self._places: set[Folder] = set()
        self._changed = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._ended = asyncio.Event()

    # --- its own life -----------------------------------------------------------------------

    async def serve(self) -> None:
        """The parent of every agent's tasks; returns after `close`."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await self._ended.wait()
            for agent in list(self._live.values()):
                ending = agent.close(self._patience.house)
                tasks.create_task(ending, name=f"close:{agent.name}")

    def close(self) -> None:
        """Ask every agent to end, and see to it within some seconds."""
        self._ended.set()

    def live(self) -> Sequence[LiveAgentInfo]:
        """Who is here now."""
        return [
            LiveAgentInfo(
                id=agent.name,
                folder=folder,
                state=type(agent.state).__name__.lower(),
                since=agent.started_at,
                pid=agent.pid,
            )
            for folder, agent in self._live.items()
        ]

    # --- ports.Agent ------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def seat(self, brief: Brief) -> AsyncIterator[SandboxedSeat]:
        agent, is_warm = await self._take(brief)
        seat = SandboxedSeat(agent, brief, is_warm=is_warm, start_anew=self._start_anew)
        try:
            yield seat
        except BaseException:
            self._spawn(seat.agent.terminate(), f"terminate:{seat.agent.name}")
            raise
        seat.agent.rest(is_kept=not seat.is_dismissed)
        if seat.is_dismissed:
            self._spawn(seat.agent.close(), f"close:{seat.agent.name}")
        self._changed.set()  # a warm one can make room for whoever waits

    async def forget(self, chat: ChatId) -> None:
        for agent in list(self._live.values()):
            if agent.brief.chat == chat and isinstance(agent.state, Warm):
                await agent.close()

    async def evict(self, chat: ChatId) -> None:
        """End the agent of this chat, busy or warm; returns when it is gone."""
        for agent in list(self._live.values()):
            if agent.brief.chat == chat:
                await agent.stop()

    # --- who gets a place -------------------------------------------------------------------

    async def _take(self, brief: Brief) -> tuple[LiveAgent, bool]:
        folder = brief.group.folder
        shown = await self._extras(brief)
        while (agent := self._live.get(folder)) is not None:
            if agent.can_serve(brief) and agent.extras == shown:
                agent.attach(brief)
                # It may have made a mess of its input folder: then a fresh one must do.
                with contextlib.suppress(AgentFailedError):
                    agent.give(brief.batch)
                    return agent, True
            await agent.close()
        await self._make_room(folder)
        return await self._start(brief), False

    async def _extras(self, brief: Brief) -> tuple[Mount, ...]:
        """As the allow-list is now: a warm agent must not keep what it may no longer see."""
        if not brief.settings.mounts:
            return ()
        try:
            shown = await asyncio.to_thread(extras, brief, self._equipment)
        except AgentRefusedError:
            await self.forget(brief.chat)
            raise
        return tuple(map(extra_mount, shown))

    async def _start_anew(self, brief: Brief) -> LiveAgent:
        """R9: the warm one was dead; its place is free, or will be as soon as its exit is seen."""
        await self._make_room(brief.group.folder)
        return await self._start(brief)

    async def _make_room(self, folder: Folder) -> None:
        """R15: close the least recently used warm one, a task's before any other; never wait for
        an idle timer."""
        while len(self._places) >= self._max_live or folder in self._places:
            self._changed.clear()
            warm = [agent for agent in self._live.values() if isinstance(agent.state, Warm)]
            if warm and folder not in self._places:
                await min(warm, key=_of_use).close()
            else:
                await self._changed.wait()
        self._places.add(folder)

    async def _start(self, brief: Brief) -> LiveAgent:
        folder = brief.group.folder
        equipment = self._equipment
        try:
            sandbox = self._sandbox_for(brief.settings.sandbox)
            name = AgentId(f"hallporter-{folder}-{int(self._clock.now().timestamp() * 1000)}")
            tray, run_log = await asyncio.to_thread(lay_out, name, brief, equipment)
            try:
                launch = await asyncio.to_thread(launch_of, name, brief, equipment, sandbox)
                box = await sandbox.launch(launch)
            except BaseException as error:
                run_log.close(f"not started: {error}")
                raise
        except BaseException:
            self._leave(folder)
            raise
        agent = LiveAgent(
            name=name,
            brief=brief,
            box=box,
            extras=tuple(mount for mount in launch.mounts if mount.is_foreign),
            tray=tray,
            run_log=run_log,
            clock=self._clock,
            speaks_through=brief.settings.kind != COMMAND,
            on_late=self._late,
            patience=self._patience,
        )
        self._live[folder] = agent
        self._spawn(self._accompany(folder, agent), f"agent:{name}")
        log.info("agent.spawned", agent=name, sandbox=sandbox.name, pid=box.pid)
        return agent

    async def _accompany(self, folder: Folder, agent: LiveAgent) -> None:
        async with asyncio.TaskGroup() as tasks:
            idling = tasks.create_task(self._idle(agent), name=f"idle:{agent.name}")
            try:
                await agent.run()
            finally:
                # In the same step as its exit: nobody meets an agent that is gone.
                del self._live[folder]
                self._leave(folder)
                idling.cancel()

    def _leave(self, folder: Folder) -> None:
        self._places.discard(folder)
        self._changed.set()

    async def _idle(self, agent: LiveAgent) -> None:
        """Close a warm agent when nobody came back for it; a late word starts the time anew."""
        while True:
            await agent.rested.wait()
            if not isinstance(state := agent.state, Warm):
                return
            left = state.since + agent.may_rest - self._clock.now()
            if left.total_seconds() <= 0:
                log.info("agent.idle", agent=agent.name)
                await agent.close()
                return
            await self._clock.sleep(left)

    async def _late(self, block: LateBlock) -> None:
        try:
            await self._on_late(block)
        except FencedError:
            log.info("block.late_fenced", agent=block.agent)
        except Exception:  # the border to the switchboard: a late word must not end its agent
            log.exception("block.late_failed", agent=block.agent)

    def _spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        if self._tasks is None:
            raise AgentRefusedError("the agents room is not open")
        self._tasks.create_task(work, name=name)


def _of_use(agent: LiveAgent) -> tuple[bool, float]:
    since = agent.state.since.timestamp() if isinstance(agent.state, Warm) else 0.0
    return (agent.brief.task is None, since)
