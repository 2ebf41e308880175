"""The input tray of a sandbox: follow-ups go in as files, the agent takes them by deleting them.

The folder is writable for the agent, so nothing in it is trusted: every step goes through a
directory handle that was opened without following links.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentFailedError
from hallporter.placing import ensure_folder, place_file
from hallporter.removal import empty, opened
from hallporter_wire.follow_up import CLOSE

if TYPE_CHECKING:
    from pathlib import Path


class Tray:
    """`ipc/input` of one folder."""

    def __init__(self, ipc: Path) -> None:
        self._ipc = ipc

    def empty(self) -> None:
        """Before a spawn: what an earlier agent left lying, whatever it made of the folder."""
        with opened(self._ipc) as ipc:
            ensure_folder(ipc, "input")
            with opened("input", ipc) as tray:
                empty(tray)

    def put(self, name: str, content: bytes) -> None:
        """All of it or nothing."""
        try:
            with opened(self._ipc) as ipc, opened("input", ipc) as tray:
                place_file(tray, name, content)
        except OSError as error:
            raise AgentFailedError(f"the agent's input folder cannot be used: {error}") from error

    def close(self) -> None:
        """Ask the agent to end."""
        # The agent may be gone, or have made a mess of its folder: the signals come next anyway.
        with contextlib.suppress(AgentFailedError):
            self.put(CLOSE, b"")

    def has(self, name: str) -> bool:
        """Whether the agent has not taken this file yet."""
        try:
            with opened(self._ipc) as ipc, opened("input", ipc) as tray:
                os.stat(name, dir_fd=tray, follow_symlinks=False)
        except OSError:
            return False
        return True


def ensure_folders(ipc: Path, names: tuple[str, ...]) -> None:
    """Make the folders of the mailroom; one that is a link or a file is put right."""
    ipc.mkdir(parents=True, exist_ok=True)
    with opened(ipc) as handle:
        for name in names:
            ensure_folder(handle, name)
