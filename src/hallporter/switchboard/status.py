"""How the house stands: what runs, what waits, what failed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from hallporter.domain.errors import UnavailableError
from hallporter.ports import Health

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.brief import Fitness
    from hallporter.domain.notice import Notice
    from hallporter.domain.turn import Turn
    from hallporter.ports import Channel, Clock, Engine, EngineHealth, Store

_RECENT = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAgentInfo:
    """One running agent, busy or warm."""

    id: str
    folder: str
    state: str
    since: datetime
    pid: int


class LiveAgents(Protocol):
    """Who is in the house now."""

    def live(self) -> Sequence[LiveAgentInfo]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxInfo:
    """One kind of box on this machine."""

    name: str
    fitness: Fitness
    is_chosen: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What the home takes, in bytes, and what is left; `errors` counts files put aside."""

    database: int
    groups: int
    logs: int
    errors: int
    free: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the house uses now: bytes of memory by agent, and the disk."""

    memory: Mapping[str, int]
    storage: Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Failures that have one reason; newest at `last`."""

    why: str
    count: int
    last: datetime
    chats: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What `status` shows and `/readyz` judges."""

    channels: Mapping[str, Health]
    engine: EngineHealth
    agents: Sequence[LiveAgentInfo]
    sandboxes: Sequence[SandboxInfo]
    messages: Mapping[str, int]
    outbox: Mapping[str, int]
    failures: Sequence[Turn]
    notices: Sequence[Notice]
    groups: int
    tasks: Mapping[str, int]  # by status
    next_tick: datetime | None
    store: Health

    @property
    def troubles(self) -> Sequence[Trouble]:
        """The failures by their reason, the most frequent first."""
        by_reason: dict[str, list[Turn]] = {}
        for turn in self.failures:
            by_reason.setdefault(turn.why, []).append(turn)
        found = [
            Trouble(
                why=why,
                count=len(turns),
                last=max(turn.ended_at or turn.started_at for turn in turns),
                chats=sorted({turn.chat for turn in turns}),
            )
            for why, turns in by_reason.items()
        ]
        return sorted(found, key=lambda trouble: (-trouble.count, trouble.why))

    @property
    def problems(self) -> Sequence[str]:
        """Why the house is not ready; empty when it is."""
        found = [f"channel {name}: {h.why}" for name, h in self.channels.items() if not h.ok]
        if not self.engine.ok:
            found.append(f"engine: {self.engine.why or 'stopping'}")
        if not self.store.ok:
            found.append(f"store: {self.store.why}")
        if self.sandboxes and not any(box.is_chosen for box in self.sandboxes):
            found.append("sandbox: " + " ".join(dict.fromkeys(b.why for b in self.sandboxes)))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What the store says, of one moment."""

    messages: Mapping[str, int]
    outbox: Mapping[str, int]
    failures: Sequence[Turn]
    groups: int
    tasks: Mapping[str, int]
    next_tick: datetime | None


class Status:
    """The use case behind `status`, `/api/status` and `/readyz`."""

    def __init__(
        self,
        *,
        store: Store,
        check_store: Callable[[], Awaitable[None]],
        engine: Engine,
        channels: Sequence[Channel],
        agents: LiveAgents,
        notices: Callable[[], Awaitable[Sequence[Notice]]],
        sandboxes: Callable[[], Sequence[SandboxInfo]],
        memory_of: Callable[[int], int],
        storage: Callable[[], Storage],
        clock: Clock,
    ) -> None:
        self._store = store
        self._check_store = check_store
        self._engine = engine
        self._channels = channels
        self._agents = agents
        self._notices = notices
        self._sandboxes = sandboxes
        self._memory_of = memory_of
        self._storage = storage
        self._clock = clock

    async def report(self) -> Report:
        since = self._clock.now() - _RECENT

        def fn(tx: Tx) -> _Read:
            return _Read(
                messages=tx.messages.counts(),
                outbox=tx.outbox.counts(),
                failures=tx.turns.failures(since),
                groups=tx.groups.count(),
                tasks=tx.tasks.counts(),
                next_tick=tx.tasks.next_at(),
            )

        read = await self._store.read(fn)
        return Report(
            channels={channel.name: channel.health() for channel in self._channels},
            engine=self._engine.health(),
            agents=self._agents.live(),
            sandboxes=self._sandboxes(),
            messages=read.messages,
            outbox=read.outbox,
            failures=read.failures,
            notices=await self._notices(),
            groups=read.groups,
            tasks=read.tasks,
            next_tick=read.next_tick,
            store=await self.store_health(),
        )

    async def usage(self) -> Usage:
        """Apart from the report: it looks at many files, and a watchdog asks often."""
        agents = self._agents.live()

        def look() -> Usage:
            memory = {agent.id: self._memory_of(agent.pid) for agent in agents}
            return Usage(memory=memory, storage=self._storage())

        return await asyncio.to_thread(look)

    async def store_health(self) -> Health:
        """What cannot be read, or takes no writes for want of room, is said, not raised."""
        try:
            await self._check_store()
        except UnavailableError as error:
            return Health(ok=False, why=error.message)
        return Health(ok=True)
