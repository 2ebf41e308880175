"""The words that tell bubblewrap what a box looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.sandboxes.machine import HOME
from hallporter.sandboxes.mounts import parents_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hallporter.domain.brief import Mount
    from hallporter.sandboxes.machine import Machine

UID = 1000  # inside, whoever it is outside

_MIB = 1 << 20
# Folders of the box's own, writable and gone with it: bytes they may hold.
SCRATCH = {"/tmp": 512 * _MIB, "/dev/shm": 256 * _MIB, HOME: 256 * _MIB}  # noqa: S108 inside

# Where, on the stage, the sources lie that the box's user could not reach by himself.
_STAGE = "/stage"


def walls(*, can_disable_userns: bool, seccomp: int | None) -> list[str]:
    """What keeps the program in: every namespace, no capability, a filter in an open file."""
    words = ["--unshare-all", "--unshare-user", "--uid", str(UID), "--gid", str(UID)]
    if can_disable_userns:
        words.append("--disable-userns")
    if seccomp is not None:
        words += ["--seccomp", str(seccomp)]
    return [*words, "--cap-drop", "ALL", "--new-session", "--hostname", "agent"]


def room(
    machine: Machine,
    files: Mapping[str, int],
    mounts: Sequence[Mount],
    *,
    places: Mapping[str, int],
    is_staged: bool,
) -> list[str]:
    """What the program sees; `files` are open files by their path inside, `places` the open sources
    of mounts by their targets."""
    words = _system(machine)
    for path in machine.etc:
        words += ["--ro-bind", path, path]
    for path, descriptor in files.items():
        words += ["--perms", "0444", "--file", str(descriptor), path]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for path, size in SCRATCH.items():
        words += ["--size", str(size), "--tmpfs", path]
    for index, (source, target, is_writable) in enumerate(_brought(machine, mounts)):
        if is_staged:
            words += _bind(f"{_STAGE}/{index}", target, None, is_writable=is_writable)
        else:
            words += _bind(source, target, places.get(target), is_writable=is_writable)
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/"]


def surroundings(workdir: str, environment: Mapping[str, str]) -> list[str]:
    """Where the program begins, and what it is told."""
    words = ["--chdir", workdir, "--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    return words


def leash(status: int) -> list[str]:
    """An end with the host; bubblewrap tells the number of its first process in an open file."""
    return ["--die-with-parent", "--json-status-fd", str(status)]


def stage(machine: Machine, mounts: Sequence[Mount], places: Mapping[str, int]) -> list[str]:
    """A bare root in which another user finds all that a box is built of.

    Its processes are numbered apart: they die with the first of them, which is still root's. Of
    another user's process the kernel would not ask that when a watcher without rights is killed.
    """
    words = ["--unshare-pid", "--cap-drop", "ALL"]
    words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]  # to give up being root
    words += _system(machine)
    words += ["--ro-bind", "/etc", "/etc", "--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev"]
    # The second bubblewrap begins its work in /tmp; by default folders are for their maker alone.
    words += ["--chmod", "0755", "/", "--dir", "/tmp", "--perms", "0755", "--dir", _STAGE]  # noqa: S108
    for index, (source, target, is_writable) in enumerate(_brought(machine, mounts)):
        place = places.get(target)
        words += _bind(source, f"{_STAGE}/{index}", place, is_writable=is_writable)
    return words


def _system(machine: Machine) -> list[str]:
    words: list[str] = []
    for path in machine.system:
        words += ["--ro-bind", path, path]
    for path, leads_to in machine.links:
        words += ["--symlink", leads_to, path]
    return words


def _bind(source: str, target: str, place: int | None, *, is_writable: bool) -> list[str]:
    word = "--bind" if is_writable else "--ro-bind"
    if place is None:
        return [word, source, target]
    return [f"{word}-fd", str(place), target]


def _brought(machine: Machine, mounts: Sequence[Mount]) -> list[tuple[str, str, bool]]:
    """Source, target, writable; in the same order on the stage and in the room."""
    return [
        *((path, path, False) for path in machine.extra),
        *(
            (str(mount.source.absolute()), mount.target, mount.writable)
            for mount in parents_first(mounts)
        ),
    ]
