"""Whether a command can be started in a box, known before the box is made."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.domain.brief import Launch


def require_program(
    launch: Launch, *, path: str, uid: int, behind: Callable[[str], Path | None]
) -> None:
    """Raises `AgentRefusedError` when the program is not there, or `uid` may not run it.

    `behind` gives the host's path of a path inside, None for one that the box does not show.
    """
    if not launch.argv:
        raise AgentRefusedError("The agent has no command: set `command` to a list of words.")
    name = launch.argv[0]
    if "/" in name:
        inside = str(PurePosixPath(launch.workdir) / name)
        trouble = _trouble(behind(inside), uid)
        if trouble:
            raise AgentRefusedError(f"The agent's program {inside} {trouble}.", program=name)
    elif all(_trouble(behind(f"{folder}/{name}"), uid) for folder in path.split(":") if folder):
        raise AgentRefusedError(
            f"The agent's program '{name}' is not found in the sandbox's PATH ({path}): "
            "install it, or give its full path.",
            program=name,
        )


def require_workdir(launch: Launch, *, behind: Callable[[str], Path | None]) -> None:
    """Raises `AgentRefusedError` when the program could not start in its folder."""
    folder = behind(launch.workdir)
    if folder is None or not folder.is_dir():
        raise AgentRefusedError(
            f"The agent's folder {launch.workdir} is not there in its sandbox: mount it.",
            workdir=launch.workdir,
        )


def _trouble(program: Path | None, uid: int) -> str:
    """What is wrong with a program, empty when nothing is."""
    if program is None:
        return "is not visible in its sandbox: mount its folder"
    try:
        status = program.stat()
    except OSError:
        if program.is_symlink():
            return ""  # it may lead somewhere inside that the host does not have
        return "does not exist"
    if not stat.S_ISREG(status.st_mode):
        return "is not a file"
    if uid == 0:
        bits = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
    elif status.st_uid == uid:
        bits = stat.S_IXUSR
    else:
        bits = stat.S_IXGRP | stat.S_IXOTH
    if not status.st_mode & bits:
        return "is not executable: chmod +x it"
    return ""
