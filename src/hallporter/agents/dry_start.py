"""A start without an agent: its box is made as it would be, and what stands in it is looked at."""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.agents.launching import COMMAND, extras, launch_of
from hallporter.domain.brief import Batch, Brief
from hallporter.domain.errors import AgentFailedError
from hallporter.domain.ids import AgentId, TurnId

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.agents.launching import Equipment
    from hallporter.domain.brief import AgentSettings
    from hallporter.domain.group import Group
    from hallporter.ports import Box, Sandbox

PREFIX = "dry-"  # of a box's name
_PATIENCE = 10.0  # seconds

# Runs in place of the agent; its arguments are the agent's command. It says what it saw as JSON.
_PROGRAM = """
import json, os, shutil, sys
program, *rest = sys.argv[1:]
found = shutil.which(program)
trouble = ""
if found is None:
    trouble = f"the program {program} is not there, or may not be run"
else:
    with open(found, "rb") as file:
        first = file.readline(256)
    words = first[2:].split() if first.startswith(b"#!") else []
    if words and not os.access(words[0], os.X_OK):
        interpreter = words[0].decode(errors="replace")
        trouble = f"the program {program} needs {interpreter}, which is not there"
missing = [word for word in rest if word.startswith("/") and not os.path.exists(word)]
print(json.dumps({"trouble": trouble, "missing": missing}))
"""
_RUNNER = "import hallporter_runner.__main__, json; print(json.dumps({'trouble': ''}))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen from inside."""

    trouble: str
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what it has less of than was asked for


async def dry_start(
    group: Group,
    settings: AgentSettings,
    *,
    equipment: Equipment,
    sandbox: Sandbox,
    now: datetime,
    timezone: str,
) -> Seen:
    """Nobody is talked to, and a live agent of the folder is not disturbed.

    Raises `AgentRefusedError` or `AgentFailedError` as the start of a turn would.
    """
    brief = _brief(group, settings, now, timezone)
    await asyncio.to_thread(equipment.premises.prepare, group)
    name = AgentId(f"{PREFIX}{group.folder}-{secrets.token_hex(4)}")
    launch = await asyncio.to_thread(launch_of, name, brief, equipment, sandbox)
    program = (_PROGRAM, *launch.argv) if settings.kind == COMMAND else (_RUNNER,)
    box = await sandbox.launch(replace(launch, argv=(equipment.python, "-S", "-c", *program)))
    seen = await _listen(box)
    return replace(seen, notes=_notes(brief, equipment))


async def _listen(box: Box) -> Seen:
    try:
        async with asyncio.timeout(_PATIENCE):
            box.stdin.close()
            output, errors = await asyncio.gather(box.stdout.read(), box.stderr.read())
            code = await box.wait()
    except TimeoutError:
        message = f"a trial run in its sandbox did not end within {_PATIENCE:.0f} seconds"
        raise AgentFailedError(message) from None
    finally:
        box.kill()
        await box.wait()
    if code != 0:
        said = errors.decode(errors="replace").strip().splitlines()
        message = f"a trial run in its sandbox ended with {code}: {said[-1] if said else 'no word'}"
        raise AgentFailedError(message)
    seen = json.loads(output)
    return Seen(trouble=seen["trouble"], missing=tuple(seen.get("missing", ())))


def _notes(brief: Brief, equipment: Equipment) -> tuple[str, ...]:
    shown = extras(brief, equipment)
    return tuple(f"{one.name} is mounted read-only: {one.note}" for one in shown if one.note)


def _brief(group: Group, settings: AgentSettings, now: datetime, timezone: str) -> Brief:
    return Brief(
        turn=TurnId(PREFIX),
        chat=group.chat,
        group=group,
        settings=settings,
        batch=Batch(lines=(), through=0),
        epoch=0,
        attempt=1,
        session_no=0,
        session_id=None,
        assistant_name="",
        now=now,
        timezone=timezone,
    )
