"""What groups and logs have in the home folder, as far as it can be removed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.errors import RefusedError
from hallporter.removal import empty, opened, remove
from hallporter.stores.manifest import ASIDE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from hallporter.domain.ids import Folder

log = structlog.get_logger(__name__)

_LIVE_LOG = "hallporter.log"
_TREES = ("groups", "data/sessions", "data/ipc", "data/claims", "data/media")
_MOUNTED = (errno.EXDEV, errno.EBUSY)  # a folder on a disk of its own cannot be moved


class Belongings:
    """`forgetting.Belongings` and `retention.Logs` on one home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._in_place: set[Path] = set()

    async def set_aside(self, folders: Sequence[Folder]) -> None:
        await asyncio.to_thread(self._set_aside, folders)

    async def destroy(self) -> int:
        return await asyncio.to_thread(self._destroy)

    async def remove_logs(self, before: datetime) -> int:
        return await asyncio.to_thread(self._remove_logs, before.timestamp())

    def _set_aside(self, folders: Sequence[Folder]) -> None:
        self._drop_refused(folders)
        for tree in self._trees():
            for path in (tree / folder for folder in folders):
                if not os.path.lexists(path):
                    continue
                if path.is_symlink() and path.is_dir():  # the operator's: agents cannot write here
                    self._in_place.add(path.resolve())
                    continue
                try:
                    # Beside it: each tree may be on a disk of its own, behind a link or mounted.
                    path.rename(tree / f"{ASIDE}{secrets.token_hex(8)}")
                except OSError as error:
                    if error.errno not in _MOUNTED:
                        raise _stuck(path, error) from error
                    self._in_place.add(path)

    def _drop_refused(self, folders: Sequence[Folder]) -> None:
        """Requests that were put aside: their names may be read as another folder's, so the
        reason beside each says whose it was."""
        for reason in self._home.glob("data/ipc/errors/*.reason.txt"):
            try:
                lines = reason.read_text("utf-8", "replace").splitlines()
                if any(f"folder: {folder}" in lines[-1:] for folder in folders):
                    reason.with_name(reason.name.removesuffix(".reason.txt")).unlink(
                        missing_ok=True
                    )
                    reason.unlink(missing_ok=True)
            except OSError as error:
                raise _stuck(reason, error) from error

    def _destroy(self) -> int:
        count = 0
        aside = [path for tree in self._trees() for path in tree.glob(f"{ASIDE}*")]
        for path in (*aside, *self._in_place):
            try:
                if path in self._in_place:
                    with opened(path) as folder:
                        count += empty(folder)
                else:
                    count += remove(path)
            except OSError as error:
                raise _stuck(path, error) from error
        self._in_place.clear()
        return count

    def _trees(self) -> list[Path]:
        return [(self._home / tree).resolve() for tree in _TREES if (self._home / tree).is_dir()]

    def _remove_logs(self, before: float) -> int:
        places = [(self._home / "logs").resolve(), *self._home.glob("groups/*/logs")]
        return sum(1 for place in places for _ in drop_old(place, before))


def _stuck(path: Path, error: OSError) -> RefusedError:
    return RefusedError(
        f"{path} cannot be removed: {error.strerror} ({error.filename}); what is in it is kept:"
        " mend that, and ask for its removal again"
    )


def drop_old(place: Path, before: float) -> Iterator[str]:
    """The names of the files that went; those that cannot go are logged, and stay."""
    # Never along links, and no deeper: agents write here, and must not choose what goes.
    with contextlib.suppress(NotADirectoryError, FileNotFoundError), opened(place) as here:
        for name in os.listdir(here):  # noqa: PTH208  a handle, not a path
            try:
                found = os.stat(name, dir_fd=here, follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode) or found.st_mtime >= before:
                    continue
                if name != _LIVE_LOG:
                    os.unlink(name, dir_fd=here)
                    yield name
            except FileNotFoundError:
                continue  # gone since its folder was read: agents and rotation remove some, too
            except OSError as error:
                log.warning("log.not_removed", folder=str(place), file=name, error=str(error))
