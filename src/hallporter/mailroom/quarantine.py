"""Where requests go that nobody could carry out: kept for the operator, with the reason beside."""

from __future__ import annotations

import os
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from pathlib import Path

    from hallporter.mailroom.claims import Claim

log = structlog.get_logger(__name__)

REASON = ".reason.txt"  # behind the name of what it is about
MOST = 1000  # requests kept; the oldest go
_MOST_CONTENT = 64 * 1024  # bytes kept of one
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600


class Quarantine:
    """`data/ipc/errors`, in no agent's mount. Several threads may put something in."""

    def __init__(self, path: Path, *, most: int = MOST) -> None:
        self._path = path
        self._most = most
        self._kept: deque[str] | None = None  # the oldest first
        self._lock = Lock()

    def put(self, claim: Claim, reason: str) -> None:
        """Raises OSError."""
        with self._lock:
            if self._kept is None:
                self._kept = self._there()
            name = self._keep(claim)
            told = f"{reason}\nfolder: {claim.folder}\n"
            (self._path / f"{name}{REASON}").write_text(told, encoding="utf-8")
            self._kept.append(name)
            while len(self._kept) > self._most:
                self._drop(self._kept.popleft())
        log.warning("command.put_aside", folder=claim.folder, file=name, why=reason)

    def _keep(self, claim: Claim) -> str:
        """As it was, or the beginning of it; under its own name if that is free."""
        plain = f"{claim.folder}-{claim.name}"
        for name in (plain, f"{claim.folder}-{claim.id}-{claim.name}"):
            try:
                file = os.open(self._path / name, _NEW_FILE, _PRIVATE)
            except FileExistsError:
                continue
            with os.fdopen(file, "wb") as keeping:
                keeping.write(claim.content[:_MOST_CONTENT])
            return name
        return plain  # put aside twice, by a host that was cut short in between

    def _drop(self, name: str) -> None:
        for file in (name, f"{name}{REASON}"):
            (self._path / file).unlink(missing_ok=True)
        log.warning("command.dropped_from_errors", file=name, most=self._most)

    def _there(self) -> deque[str]:
        with os.scandir(self._path) as entries:
            files = [(entry.stat(follow_symlinks=False).st_mtime, entry.name) for entry in entries]
        return deque(name for _, name in sorted(files) if not name.endswith(REASON))
