"""The folders of one group, as the host keeps them and as its agent sees them (002, step 6)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.agents.tray import ensure_folders
from hallporter.domain.brief import Mount
from hallporter.domain.errors import AgentRefusedError

if TYPE_CHECKING:
    from hallporter.domain.extra_mount import Granted
    from hallporter.domain.group import Group

_IPC_FOLDERS = ("messages", "tasks", "input", "results")
_PACKAGES = ("hallporter_runner", "hallporter_wire")

GROUP = "/workspace/group"
# The folder that holds the runner. Written as the parent of a mount, because a sandbox without
# walls shows mounts elsewhere and translates only what lies in one.
RUNNER_PATH = "/app/src/hallporter_runner/.."


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """Where things lie on this machine: the home, and the installed source."""

    home: Path
    source: Path  # the folder that holds our packages
    elsewhere: tuple[Path, ...] = ()  # what the house keeps outside of its home

    def ipc(self, group: Group) -> Path:
        """The files between host and sandbox."""
        return self.home / "data" / "ipc" / group.folder

    def group(self, group: Group) -> Path:
        """The agent's own files."""
        return self.home / "groups" / group.folder

    def session(self, group: Group) -> Path:
        """The agent's memory between turns."""
        return self.home / "data" / "sessions" / group.folder / ".claude"

    @property
    def mount_policy(self) -> Path:
        """What else may be shown to agents; itself in no mount."""
        return self.home / "policy" / "mounts.json"

    @property
    def protected(self) -> tuple[Path, ...]:
        """What no extra mount may show."""
        return (self.home, *self.elsewhere)

    @property
    def shared(self) -> Path:
        """What all groups read and main writes."""
        return self.home / "groups" / "global"

    def prepare(self, group: Group) -> None:
        """Make what is lacking."""
        self.group(group).mkdir(parents=True, exist_ok=True)
        self.session(group).mkdir(parents=True, exist_ok=True)
        self.shared.mkdir(parents=True, exist_ok=True)
        ensure_folders(self.ipc(group), _IPC_FOLDERS)

    def mounts(self, group: Group) -> tuple[Mount, ...]:
        """Main may write what all read, and may read the source it runs on; never more."""
        mounts = [
            Mount(source=self.group(group), target=GROUP, writable=True),
            Mount(source=self.shared, target="/workspace/global", writable=group.is_main),
            Mount(source=self.ipc(group), target="/workspace/ipc", writable=True),
            Mount(source=self.session(group), target="/home/node/.claude", writable=True),
        ]
        mounts.extend(
            Mount(source=self.source / name, target=f"/app/src/{name}", writable=False)
            for name in _PACKAGES
        )
        if group.is_main:
            mounts.extend(
                Mount(
                    source=self.source / name, target=f"/workspace/project/{name}", writable=False
                )
                for name in ("hallporter", *_PACKAGES)
            )
        return tuple(mounts)


def extra_mount(shown: Granted) -> Mount:
    """A folder from elsewhere, where its agent finds it."""
    target = f"/workspace/extra/{shown.name}"
    return Mount(source=shown.source, target=target, writable=shown.writable, is_foreign=True)


def mounts_of_arguments(argv: tuple[str, ...], home: Path) -> tuple[Mount, ...]:
    """What a foreign program names by path is shown to it there, read-only.

    Raises `AgentRefusedError` for a folder with the home in it: keys and other groups are there.
    """
    named = sorted({arg for arg in argv if arg.startswith("/") and not arg.startswith("/usr/")})
    paths = [path for path in map(Path, named) if path.exists()]
    for path in paths:
        if home.resolve().is_relative_to(path.resolve()):
            message = (
                f"the agent's command names {path}, and the whole home lies in it:"
                " name the program's own folder instead"
            )
            raise AgentRefusedError(message, path=str(path))
    return tuple(Mount(source=path, target=str(path), writable=False) for path in paths)
