"""Limits on what a box may use: control groups of the kernel, version 1 or 2."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hallporter.domain.brief import Limits

_CONTROLLERS = {"memory": "memory", "pids": "pids", "cpu": "cpus"}  # controller: limit's name
_PERIOD = 100_000  # microseconds over which a share of the processors is measured

# A kernel that does not count swap lacks these files.
_WHERE_SWAP_IS_COUNTED = ("memory.swap.max", "memory.memsw.limit_in_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A folder of the kernel's in which we may make groups."""

    parent: Path
    version: int
    controllers: frozenset[str]


def find(root: Path = Path("/sys/fs/cgroup"), own: str | None = None) -> tuple[Hierarchy, ...]:
    """Where groups can be made here; `own` is what /proc/self/cgroup says."""
    if (root / "cgroup.controllers").exists():
        text = Path("/proc/self/cgroup").read_text() if own is None else own
        return tuple(_find_unified(root, text))
    return tuple(_find_separate(root))


def unenforced(hierarchies: Sequence[Hierarchy]) -> tuple[str, ...]:
    """One sentence for each limit that would have no effect."""
    able = {controller for hierarchy in hierarchies for controller in hierarchy.controllers}
    return tuple(
        f"{limit} limit: no control group with the {controller} controller that we may write; "
        "run as root, or under a systemd user session that delegates it"
        for controller, limit in _CONTROLLERS.items()
        if controller not in able
    )


def settings(hierarchy: Hierarchy, limits: Limits) -> dict[str, str]:
    """What to write into the files of a group, in this order; empty when nothing is limited."""
    is_unified = hierarchy.version == 2  # noqa: PLR2004 the number is its name
    wanted: dict[str, str] = {}
    if limits.memory is not None and "memory" in hierarchy.controllers:
        if is_unified:
            wanted |= {"memory.max": str(limits.memory), "memory.swap.max": "0"}
        else:
            wanted |= {
                "memory.limit_in_bytes": str(limits.memory),
                "memory.memsw.limit_in_bytes": str(limits.memory),
            }
    if limits.pids is not None and "pids" in hierarchy.controllers:
        wanted["pids.max"] = str(limits.pids)
    if limits.cpus is not None and "cpu" in hierarchy.controllers:
        quota = max(1000, round(limits.cpus * _PERIOD))  # the kernel takes no less
        if is_unified:
            wanted["cpu.max"] = f"{quota} {_PERIOD}"
        else:
            wanted |= {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": str(quota)}
    return wanted


class Fence:
    """The groups of one box, one in each hierarchy that limits something."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    @property
    def doors(self) -> tuple[str, ...]:
        """Files that a process writes its number to in order to be inside."""
        return tuple(str(folder / "cgroup.procs") for folder in self._folders)

    async def remove(self) -> None:
        """The kernel may need a moment after the last process; what stays is swept later."""
        for folder in self._folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    await asyncio.sleep(0.01)
                else:
                    break


class Fences:
    """Makes and clears away the groups of this installation's boxes."""

    def __init__(self, hierarchies: Sequence[Hierarchy], *, installation: str) -> None:
        self._hierarchies = tuple(hierarchies)
        # Other installations on this machine have their own.
        self._prefix = f"hallporter-{installation}-"

    @property
    def unenforced(self) -> tuple[str, ...]:
        return unenforced(self._hierarchies)

    def put_up(self, name: str, limits: Limits) -> Fence:
        """Raises `AgentFailedError` when the kernel does not take a limit."""
        folders: list[Path] = []
        for hierarchy in self._hierarchies:
            wanted = settings(hierarchy, limits)
            if not wanted:
                continue
            folder = hierarchy.parent / f"{self._prefix}{name}"
            try:
                folder.mkdir(exist_ok=True)
                folders.append(folder)
                for file, value in wanted.items():
                    _write(folder / file, value)
            except OSError as error:
                for made in folders:
                    with suppress(OSError):
                        made.rmdir()
                raise AgentFailedError(
                    f"The agent's limits could not be set: {error}", group=str(folder)
                ) from error
        return Fence(folders)

    def names(self) -> frozenset[str]:
        """The boxes that have groups now."""
        return frozenset(folder.name.removeprefix(self._prefix) for folder in self._folders())

    def sweep(self) -> None:
        """Remove the empty groups that an earlier host left."""
        for folder in self._folders():
            with suppress(OSError):
                folder.rmdir()

    def _folders(self) -> list[Path]:
        return [
            folder
            for hierarchy in self._hierarchies
            for folder in hierarchy.parent.glob(f"{self._prefix}*")
        ]


def _write(file: Path, value: str) -> None:
    if file.name in _WHERE_SWAP_IS_COUNTED and not file.exists():
        return
    file.write_text(value)


def _find_separate(root: Path) -> Iterator[Hierarchy]:
    """Version 1: one tree a controller. Ours are at its top: these trees are root's alone."""
    for controller in _CONTROLLERS:
        parent = root / controller
        if (parent / "cgroup.procs").exists() and os.access(parent, os.W_OK):
            yield Hierarchy(parent=parent, version=1, controllers=frozenset({controller}))


def _find_unified(root: Path, own: str) -> Iterator[Hierarchy]:
    """Version 2: one tree; ours go beside the host, in the nearest folder that hands down."""
    path = next((line[3:] for line in own.splitlines() if line.startswith("0::")), "/")
    here = root / path.strip("/")
    for parent in (here, *here.parents):
        if not parent.is_relative_to(root):
            return
        if not os.access(parent, os.W_OK) or not os.access(parent / "cgroup.procs", os.W_OK):
            continue
        handed_down = _handed_down(parent)
        if handed_down:
            yield Hierarchy(parent=parent, version=2, controllers=handed_down)
            return


def _handed_down(parent: Path) -> frozenset[str]:
    """The controllers that groups made in this folder can use; asks for those it can have."""
    control = parent / "cgroup.subtree_control"
    on = set(control.read_text().split())
    for controller in set((parent / "cgroup.controllers").read_text().split()) - on:
        if controller in _CONTROLLERS:
            # Refused where processes live in the folder itself: then it is not ours to use.
            with suppress(OSError):
                control.write_text(f"+{controller}")
    return frozenset(control.read_text().split()) & _CONTROLLERS.keys()
