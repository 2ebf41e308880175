"""Paths inside a box and the host's paths behind them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hallporter.domain.brief import Mount


def parents_first(mounts: Iterable[Mount]) -> list[Mount]:
    """The order in which they can be laid over one another."""
    return sorted(mounts, key=lambda mount: PurePosixPath(mount.target).parts)


def require_mounts(mounts: Iterable[Mount]) -> None:
    """Raises `AgentRefusedError` for a mount that can never be made."""
    for mount in mounts:
        target = PurePosixPath(mount.target)
        if not target.is_absolute() or ".." in target.parts or target == PurePosixPath("/"):
            raise AgentRefusedError(
                f"A folder cannot be shown at '{mount.target}': "
                "give an absolute path below / without '..'.",
                target=mount.target,
            )
        if not mount.source.exists():
            raise AgentRefusedError(
                f"{mount.source}, to be shown as {mount.target}, does not exist: "
                "make it, or take it out of the mounts.",
                source=str(mount.source),
            )


def require_usable(mounts: Iterable[Mount], uid: int) -> None:
    """Raises `AgentRefusedError` for a mount that `uid`, not being root, cannot read, or write
    where it should."""
    for mount in mounts:
        if mount.writable and not mount.is_foreign:
            continue  # it is handed over
        status = mount.source.stat()
        wanted = 0o5 if mount.source.is_dir() else 0o4  # to read, and to enter
        what, remedy = "read", f"chmod -R o+rX {mount.source}"
        if mount.writable:
            wanted |= 0o2
            what, remedy = "written", f"chown -R {uid} {mount.source}, or mount it read-only"
        if status.st_uid == uid:
            wanted <<= 6
        if status.st_mode & wanted != wanted:
            raise AgentRefusedError(
                f"{mount.source}, to be shown as {mount.target}, cannot be {what} by user {uid}, "
                f"as whom the agent runs: {remedy}",
                source=str(mount.source),
            )


def behind(inside: str, mounts: Iterable[Mount]) -> Path | None:
    """The host's path that a path inside comes from; None when no mount covers it."""
    path = PurePosixPath(inside)
    for mount in reversed(parents_first(mounts)):
        if path.is_relative_to(mount.target):
            return mount.source / path.relative_to(mount.target)
    return None
