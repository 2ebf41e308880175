"""The sandboxes of this machine, what was seen of each, and which one a setting means."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.brief import Fitness
from hallporter.domain.errors import AgentRefusedError
from hallporter.sandboxes.choice import STRONGEST_FIRST, choose
from hallporter.sandboxes.process import WARNING
from hallporter.switchboard.status import SandboxInfo

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hallporter.ports import Sandbox

log = structlog.get_logger(__name__)

_PLAIN = "process"  # needs no probe: it promises nothing


class Stock:
    """`preferred` is what the settings ask for where a group says nothing else."""

    def __init__(self, sandboxes: Sequence[Sandbox], preferred: str) -> None:
        self._sandboxes = {sandbox.name: sandbox for sandbox in sandboxes}
        self._preferred = preferred
        self._fitness: dict[str, Fitness] = {}

    async def probe(self, named: Collection[str] = ()) -> None:
        """Run something real in each that may be used, and say what it does not keep."""
        used = {*STRONGEST_FIRST, self._preferred, *named}
        names = [name for name in self._sandboxes if name in used]
        found = await asyncio.gather(*(self._sandboxes[name].probe() for name in names))
        self._fitness = dict(zip(names, found, strict=True))
        for name, fitness in self._fitness.items():
            self._warn(name, fitness)
        for info in self.report():
            if info.is_chosen:
                log.info("sandbox.chosen", sandbox=info.name, why=info.why)

    async def sweep(self) -> None:
        """End what an earlier host of this home left running."""
        ended = sum([await sandbox.sweep() for sandbox in self._sandboxes.values()])
        if ended:
            log.warning("sandbox.swept", ended=ended)

    def named(self, name: str) -> Sandbox:
        """What a setting means; `AgentRefusedError` says what to do when there is none."""
        if name == _PLAIN and name not in self._fitness:  # a group has named it since the start
            self._fitness[name] = Fitness(warnings=(WARNING,))
            self._warn(name, self._fitness[name])
        return self._sandboxes[choose(name, self._fitness).name]

    def _warn(self, name: str, fitness: Fitness) -> None:
        for sentence in (*fitness.unenforced, *fitness.warnings):
            log.warning("sandbox.mind", sandbox=name, what=sentence)

    def report(self) -> Sequence[SandboxInfo]:
        """For `status`: each one that was tried, and why it is or is not used."""
        chosen = ""
        try:
            choice = choose(self._preferred, self._fitness)
            chosen, why = choice.name, choice.why
        except AgentRefusedError as error:
            why = error.message
        return [
            SandboxInfo(
                name=name,
                fitness=fitness,
                is_chosen=name == chosen,
                why=why if name == chosen or not chosen else fitness.problem,
            )
            for name, fitness in self._fitness.items()
        ]
