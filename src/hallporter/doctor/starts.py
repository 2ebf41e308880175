"""A dry start of every group's agent, and a probe of every sandbox they ask for."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from hallporter.agents.dry_start import dry_start
from hallporter.agents.launching import COMMAND
from hallporter.doctor.boxes import DryStart, refused
from hallporter.domain.errors import AgentRefusedError, HallporterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hallporter.agents.launching import Equipment
    from hallporter.domain.brief import AgentSettings
    from hallporter.domain.group import Group
    from hallporter.ports import Agent, Clock
    from hallporter.sandboxes.stock import Stock
    from hallporter.switchboard.groups import Groups
    from hallporter.switchboard.status import SandboxInfo

_AT_A_TIME = 4  # boxes
_PLAIN = "process"
_USUAL_NETWORK = "gate"


class Starts:
    """What the groups' agents need, tried for real but for the agents themselves."""

    def __init__(
        self,
        *,
        groups: Groups,
        agent_of: Callable[[Group], AgentSettings],
        where_to_change: Callable[[str, str, Mapping[str, object]], str],
        by_kind: Callable[[str], Agent],
        sandboxes: Stock,
        equipment: Equipment,
        clock: Clock,
        timezone: str,
    ) -> None:
        self._groups = groups
        self._agent_of = agent_of
        self._where_to_change = where_to_change
        self._by_kind = by_kind
        self._sandboxes = sandboxes
        self._equipment = equipment
        self._clock = clock
        self._timezone = timezone

    async def probe(self) -> Sequence[SandboxInfo]:
        """Each sandbox that may be used, by a real run."""
        named = set()
        for group in await self._groups.all():
            with contextlib.suppress(AgentRefusedError):  # told by its own dry start
                named.add(self._agent_of(group).sandbox)
        await self._sandboxes.probe(named)
        return self._sandboxes.report()

    async def all(self) -> Sequence[DryStart]:
        """One for each group; needs the sandboxes probed."""
        room = asyncio.Semaphore(_AT_A_TIME)

        async def one(group: Group) -> DryStart:
            async with room:
                try:
                    return await self._start(group)
                except HallporterError as error:
                    setting = str(error.facts.get("setting", COMMAND))
                    where = self._where_to_change(group.folder, setting, group.agent)
                    return refused(group.folder, error, where)

        return await asyncio.gather(*(one(group) for group in await self._groups.all()))

    async def _start(self, group: Group) -> DryStart:
        settings = self._agent_of(group)
        self._by_kind(settings.kind)  # refuses what this version does not have
        sandbox = self._sandboxes.named(settings.sandbox)
        seen = await dry_start(
            group,
            settings,
            equipment=self._equipment,
            sandbox=sandbox,
            now=self._clock.now(),
            timezone=self._timezone,
        )
        decisive = COMMAND if settings.kind == COMMAND else "kind"
        return DryStart(
            folder=group.folder,
            kind=settings.kind,
            sandbox=sandbox.name,
            trouble=seen.trouble,
            missing=seen.missing,
            notes=seen.notes,
            where_to_change=self._where_to_change(group.folder, decisive, group.agent),
            is_network_moot=sandbox.name == _PLAIN and settings.network != _USUAL_NETWORK,
        )
