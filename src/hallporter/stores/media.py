"""The files of messages in the home folder: copies that no agent can reach."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
from typing import IO, TYPE_CHECKING

from hallporter.domain.enclosure import MAX_ENCLOSURE, excerpt
from hallporter.domain.errors import InvalidRequestError, RefusedError, TooLargeError
from hallporter.removal import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from hallporter.domain.enclosure import Enclosure, FilePlace
    from hallporter.domain.ids import EnclosureId, Folder

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600
_CHUNK = 1 << 20  # bytes
_PART = ".part"  # of a copy that is being written
# Neither a link in the place of a file nor a pipe may hold the reader up.
_HOW = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Media:
    """`enclosures.Shelf` on one home."""

    def __init__(self, home: Path) -> None:
        self._groups = home / "groups"
        self._path = home / "data" / "media"

    async def keep(self, place: FilePlace, group: Folder, folder: Folder, id: EnclosureId) -> int:
        return await asyncio.to_thread(self._keep, place, group, self._path / folder, id)

    async def find(self, file: Enclosure) -> Path | None:
        path = self._path / file.folder / file.id
        return path if await asyncio.to_thread(path.is_file) else None

    async def discard(self, file: Enclosure) -> None:
        path = self._path / file.folder / file.id
        with contextlib.suppress(OSError):  # then the sweep takes it
            await asyncio.to_thread(path.unlink)

    async def sweep(
        self, known: frozenset[EnclosureId], *, before: datetime | None, lost_before: datetime
    ) -> int:
        old = None if before is None else before.timestamp()
        return await asyncio.to_thread(self._sweep, known, old, lost_before.timestamp())

    def _keep(self, place: FilePlace, group: Folder, folder: Path, id: EnclosureId) -> int:
        root = self._groups / ("global" if place.is_shared else group)
        with _reading(root, place) as file:
            try:
                return _copy(file, place, folder, id)
            except OSError as error:
                message = f"the host cannot keep a copy of the file: {error.strerror}; try later"
                raise RefusedError(message) from error

    def _sweep(self, known: frozenset[EnclosureId], old: float | None, lost: float) -> int:
        count = 0
        for path in self._path.glob("*/*"):
            with contextlib.suppress(FileNotFoundError):
                kept_at = path.stat().st_mtime
                is_lost = path.name not in known and kept_at < lost
                if is_lost or (old is not None and kept_at < old):
                    path.unlink()
                    count += 1
        return count


def _copy(file: IO[bytes], place: FilePlace, folder: Path, id: EnclosureId) -> int:
    """Whole and on the disk before anyone is told of it."""
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    part = folder / f"{id}{_PART}"
    with contextlib.ExitStack() as unless_it_works:
        unless_it_works.callback(part.unlink, missing_ok=True)
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
        size = 0
        with os.fdopen(number, "wb") as copy:
            # Its agent may still write to it: what counts is what was read.
            while data := file.read(_CHUNK):
                size += len(data)
                if size > MAX_ENCLOSURE:
                    raise _too_large(place)
                copy.write(data)
            copy.flush()
            os.fsync(copy.fileno())
        part.rename(folder / id)
        unless_it_works.pop_all()
    with opened(folder) as handle:
        os.fsync(handle)
    return size


@contextlib.contextmanager
def _reading(root: Path, place: FilePlace) -> Iterator[IO[bytes]]:
    """Down from the folder step by step, never along a link: agents write there."""
    shown = excerpt("/".join(place.parts))
    with contextlib.ExitStack() as closing:
        try:
            # The folder itself is the operator's, who may have put it elsewhere.
            handle = closing.enter_context(opened(root.resolve()))
            for part in place.parts[:-1]:
                handle = closing.enter_context(opened(part, handle))
            number = os.open(place.parts[-1], _HOW, dir_fd=handle)
        except FileNotFoundError as error:
            raise InvalidRequestError(f"there is no file {shown}: look at its name") from error
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                message = (
                    f"the file {shown} is reached by a link, or not through folders:"
                    " name the file itself"
                )
                raise InvalidRequestError(message) from error
            message = f"the file {shown} cannot be read: {error.strerror}"
            raise InvalidRequestError(message) from error
        closing.callback(os.close, number)
        _check(os.fstat(number), place, shown)
        with os.fdopen(number, "rb", buffering=0, closefd=False) as file:
            yield file


def _check(found: os.stat_result, place: FilePlace, shown: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        message = f"{shown} is no file: a folder, a pipe or a device cannot be sent"
        raise InvalidRequestError(message)
    if found.st_nlink != 1:
        message = f"the file {shown} has other names (hard links): send a copy of it"
        raise InvalidRequestError(message)
    if found.st_size > MAX_ENCLOSURE:
        raise _too_large(place)


def _too_large(place: FilePlace) -> TooLargeError:
    shown = excerpt("/".join(place.parts))
    most = MAX_ENCLOSURE // (1 << 20)
    message = f"the file {shown} is too large: at most {most} MiB can be sent; make it smaller"
    return TooLargeError(message, limit=MAX_ENCLOSURE)
