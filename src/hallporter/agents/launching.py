"""What a program is started with: its folders, its mounts, its words and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.agents.run_log import RunLog
from hallporter.agents.tray import Tray
from hallporter.agents.workspace import GROUP, RUNNER_PATH, mounts_of_arguments
from hallporter.domain.brief import Launch, Limits
from hallporter.domain.errors import AgentFailedError, AgentRefusedError

if TYPE_CHECKING:
    from hallporter.agents.workspace import Premises
    from hallporter.domain.brief import Brief
    from hallporter.domain.ids import AgentId
    from hallporter.ports import Sandbox

COMMAND = "command"  # the kind that is any program; the others run in our runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What a program finds around it."""

    premises: Premises
    python: str  # an interpreter that runs inside the sandboxes
    max_output_size: int  # bytes of stdout and of stderr that a log keeps


def lay_out(name: AgentId, brief: Brief, equipment: Equipment) -> tuple[Tray, RunLog]:
    """The folders as a fresh agent must find them (R7)."""
    premises = equipment.premises
    tray = Tray(premises.ipc(brief.group))
    try:
        premises.prepare(brief.group)
        tray.empty()
    except OSError as error:
        raise AgentFailedError(f"the agent's folders cannot be used: {error}") from error
    return tray, RunLog(premises.group(brief.group), name, equipment.max_output_size)


def launch_of(name: AgentId, brief: Brief, equipment: Equipment, sandbox: Sandbox) -> Launch:
    settings = brief.settings
    if settings.network == "open" and sandbox.name != "process":
        message = (
            "network = 'open' is not part of this version: a sandbox has no network;"
            " take the setting out, or use sandbox = 'process', which has the host's"
        )
        raise AgentRefusedError(message, setting="network")
    mounts = equipment.premises.mounts(brief.group)
    environment = {
        "HALLPORTER_WORKSPACE": "/workspace",
        "HALLPORTER_SANDBOX": sandbox.name,
        "CLAUDE_CONFIG_DIR": "/home/node/.claude",
        "TZ": brief.timezone,
    }
    if settings.kind == COMMAND:
        mounts = (*mounts, *mounts_of_arguments(settings.command, equipment.premises.home))
        argv = settings.command
    else:
        environment["PYTHONPATH"] = RUNNER_PATH
        argv = (equipment.python, "-S", "-m", "hallporter_runner", settings.kind)
    return Launch(
        name=name,
        argv=argv,
        mounts=mounts,
        workdir=GROUP,
        environment=environment,
        limits=Limits(memory=settings.memory, pids=settings.pids, cpus=settings.cpus),
    )
