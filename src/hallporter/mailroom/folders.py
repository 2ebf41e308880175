"""The folders of the mailroom. Agents write in them, so nothing there is taken at its word."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.folder import parse_folder
from hallporter.placing import ensure_folder
from hallporter.removal import open_up, opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hallporter.domain.ids import Folder

NAMES = ("messages", "tasks", "input", "results")


class Folders:
    """`data/ipc`: one folder a group, and in it those of the protocol."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> Sequence[Folder]:
        """Of every group that ever had one."""
        return list(_folders_in(self._path))

    def path(self, folder: Folder, name: str) -> Path:
        return self._path / folder / name

    def prepare(self, folder: Folder) -> None:
        """Make what is lacking; what an agent has put in the way goes. Raises OSError."""
        (self._path / folder).mkdir(parents=True, exist_ok=True)
        with self.opened(folder) as handle:
            for name in NAMES:
                ensure_folder(handle, name)

    @contextlib.contextmanager
    def opened(self, folder: Folder) -> Iterator[int]:
        """A group's own folder, which no agent can replace. Raises OSError."""
        with opened(self._path) as top:
            _open_up(top, folder)
            with opened(folder, top) as handle:
                yield handle

    @contextlib.contextmanager
    def box(self, folder: Folder, name: str) -> Iterator[int]:
        """One of those in it, put right if need be. Raises OSError."""
        with self.opened(folder) as handle:
            ensure_folder(handle, name)
            _open_up(handle, name)
            with opened(name, handle) as box:
                yield box


def _open_up(parent: int, name: str) -> None:
    """An agent with our own uid can close its folders to us."""
    if not os.access(name, os.R_OK | os.W_OK | os.X_OK, dir_fd=parent, follow_symlinks=False):
        open_up(parent, name)


def _folders_in(path: Path) -> Iterator[Folder]:
    for entry in sorted(path.iterdir()):
        # Whatever else lies there is the operator's.
        with contextlib.suppress(InvalidRequestError):
            if entry.is_dir() and not entry.is_symlink():
                yield parse_folder(entry.name)
