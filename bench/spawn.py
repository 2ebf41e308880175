"""The raw spawn: the same program in the same sandbox with the same mounts, and no switchboard."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import hallporter
from bench.host import AGENT, PATIENCE, chat_of, folder_of
from hallporter.agents.workspace import GROUP, Premises, mounts_of_arguments
from hallporter.clock import SystemClock
from hallporter.domain.brief import Launch, Limits
from hallporter.domain.group import Group
from hallporter.domain.ids import AgentId
from hallporter.sandboxes.bubblewrap import Bubblewrap

if TYPE_CHECKING:
    from hallporter.domain.brief import Mount

_NUMBER = 1_000_000  # of a group that no host knows
_LIMITS = Limits(memory=2 << 30, pids=512)  # as every group has them unless told otherwise


class RawSpawn:
    """Spawns, one after the other, in a home that a host may use at the same time."""

    def __init__(self, home: Path) -> None:
        self._sandbox = Bubblewrap(installation=secrets.token_hex(4))
        self._mounts = _mounts(home)

    async def once(self) -> float:
        """Milliseconds until the program had all of its stdin."""
        launch = Launch(
            name=AgentId(f"raw-{secrets.token_hex(4)}"),
            argv=AGENT,
            mounts=self._mounts,
            workdir=GROUP,
            environment={"HALLPORTER_WORKSPACE": "/workspace"},
            limits=_LIMITS,
        )
        asked = json.dumps({"prompt": "once", "through": 1}).encode()
        began = time.time_ns()
        box = await self._sandbox.launch(launch)
        box.stdin.write(asked)
        box.stdin.close()
        async with asyncio.timeout(PATIENCE):
            said = await box.stdout.read()
            await box.wait()
        block = json.loads(said.splitlines()[1])
        seen: int = json.loads(block["result"])["seen"]
        return (seen - began) / 1e6


def _mounts(home: Path) -> tuple[Mount, ...]:
    premises = Premises(home=home, source=Path(hallporter.__file__).parents[1])
    group = Group(
        chat=chat_of(_NUMBER),
        name="Raw",
        folder=folder_of(_NUMBER),
        trigger="@Andy",
        requires_trigger=False,
        is_main=False,
        added_at=SystemClock().now(),
    )
    premises.prepare(group)
    return (*premises.mounts(group), *mounts_of_arguments(AGENT, home))
