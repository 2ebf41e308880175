"""What a program is started with: its folders, its mounts, its words and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from hallporter.agents.extra_mounts import granted
from hallporter.agents.run_log import RunLog
from hallporter.agents.tool_server import PROGRAM, VARIABLE
from hallporter.agents.tray import Tray
from hallporter.agents.workspace import GROUP, RUNNER_PATH, extra_mount, mounts_of_arguments
from hallporter.domain.brief import Launch, Limits
from hallporter.domain.errors import AgentFailedError, AgentRefusedError

if TYPE_CHECKING:
    from hallporter.agents.tool_server import ToolServer
    from hallporter.agents.workspace import Premises
    from hallporter.domain.brief import Brief
    from hallporter.domain.extra_mount import Granted
    from hallporter.domain.ids import AgentId
    from hallporter.ports import Sandbox

log = structlog.get_logger(__name__)

COMMAND = "command"  # the kind that is any program; the others run in our runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What a program finds around it."""

    premises: Premises
    python: str  # an interpreter that runs inside the sandboxes
    tool_server: ToolServer
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


def extras(brief: Brief, equipment: Equipment) -> tuple[Granted, ...]:
    """What the allow-list, as it is now, lets the agent see besides its own folders.

    Raises `AgentRefusedError` when it is less than the settings ask for.
    """
    premises = equipment.premises
    return granted(
        brief.settings.mounts,
        policy=premises.mount_policy,
        protected=premises.protected,
        is_main=brief.group.is_main,
    )


def launch_of(name: AgentId, brief: Brief, equipment: Equipment, sandbox: Sandbox) -> Launch:
    settings = brief.settings
    if settings.network == "open" and sandbox.name != "process":
        message = (
            "network = 'open' is not part of this version: a sandbox has no network;"
            " take the setting out, or use sandbox = 'process', which has the host's"
        )
        raise AgentRefusedError(message, setting="network")
    shown = extras(brief, equipment)
    for one in shown:
        if one.note:
            log.warning("mount.read_only", name=one.name, folder=brief.group.folder, why=one.note)
    mounts = (*equipment.premises.mounts(brief.group), *map(extra_mount, shown))
    environment = {
        "HALLPORTER_WORKSPACE": "/workspace",
        "HALLPORTER_SANDBOX": sandbox.name,
        "CLAUDE_CONFIG_DIR": "/home/node/.claude",
        "TZ": brief.timezone,
    }
    if settings.kind == COMMAND:
        named = mounts_of_arguments(settings.command, equipment.premises.home)
        mounts = (*mounts, *equipment.tool_server.mounts(), *named)
        environment[VARIABLE] = PROGRAM
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
