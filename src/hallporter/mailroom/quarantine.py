"""Where requests go that nobody could carry out: kept for the operator, with the reason beside."""

from __future__ import annotations

import os
from collections import defaultdict, deque
from threading import Lock
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from pathlib import Path

    from hallporter.mailroom.claims import Claim

log = structlog.get_logger(__name__)

REASON = ".reason.txt"  # behind the name of what it is about
MOST = 1000  # requests kept in all; the folder with the most gives its oldest
MOST_EACH = 100  # of one folder
_FOLDER = "\nfolder: "  # behind the reason
_MOST_CONTENT = 64 * 1024  # bytes kept of one
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE = 0o600


class Quarantine:
    """`data/ipc/errors`, in no agent's mount. Several threads may put something in."""

    def __init__(self, path: Path, *, most: int = MOST) -> None:
        self._path = path
        self._most = most
        self._kept: defaultdict[str, deque[str]] | None = None  # by folder, the oldest first
        self._lock = Lock()

    def put(self, claim: Claim, reason: str) -> None:
        """Raises OSError."""
        with self._lock:
            if self._kept is None:
                self._kept = self._there()
            name = self._keep(claim)
            told = f"{reason}{_FOLDER}{claim.folder}\n"
            (self._path / f"{name}{REASON}").write_text(told, encoding="utf-8")
            own = self._kept[claim.folder]
            own.append(name)
            if len(own) > MOST_EACH:
                self._drop(own.popleft())
            while sum(map(len, self._kept.values())) > self._most:
                self._drop(max(self._kept.values(), key=len).popleft())
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

    def _there(self) -> defaultdict[str, deque[str]]:
        """What earlier hosts have put there."""
        with os.scandir(self._path) as entries:
            files = [(entry.stat(follow_symlinks=False).st_mtime, entry.name) for entry in entries]
        kept: defaultdict[str, deque[str]] = defaultdict(deque)
        for _, name in sorted(files):
            if not name.endswith(REASON):
                kept[self._folder_of(name)].append(name)
        return kept

    def _folder_of(self, name: str) -> str:
        """The name alone does not tell: a folder and a request may both have a '-' in theirs."""
        try:
            told = (self._path / f"{name}{REASON}").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""
        return told.rpartition(_FOLDER)[2].strip()
