"""What an agent printed, kept beside its files for whoever looks into a failure; capped."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, BinaryIO

import structlog

from hallporter.agents.tray import ensure_folders

if TYPE_CHECKING:
    from pathlib import Path

log = structlog.get_logger(__name__)

_KEEP = 20  # logs of a group
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class RunLog:
    """One file per agent. The folder is the agent's too, so links in it are never followed."""

    def __init__(self, group: Path, name: str, limit: int) -> None:
        self._left = {"stdout": limit, "stderr": limit}
        self._file: BinaryIO | None = None
        try:
            ensure_folders(group, ("logs",))
            folder = os.open(group / "logs", _FOLDER)
            try:
                _prune(folder)
                self._file = os.fdopen(
                    os.open(f"{name}.log", _NEW_FILE, 0o644, dir_fd=folder), "wb"
                )
            finally:
                os.close(folder)
        except OSError as error:
            log.warning("run_log.failed", error=str(error))

    def write(self, stream: str, data: bytes) -> None:
        """As it came; beyond the limit it is cut here, while reading goes on."""
        left = self._left[stream]
        if self._file is None or left <= 0:
            return
        self._left[stream] = left - len(data)
        with contextlib.suppress(OSError):  # a full disk must not end a conversation
            self._file.write(data[:left])
            if len(data) > left:
                self._file.write(f"\n[{stream} cut here]\n".encode())

    def close(self, summary: str) -> None:
        """The last line says how it ended."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write(f"\n[{summary}]\n".encode())
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def _prune(folder: int) -> None:
    names = sorted(name for name in os.listdir(folder) if name.endswith(".log"))
    for name in names[: max(0, len(names) - _KEEP + 1)]:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
