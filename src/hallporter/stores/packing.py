"""The archive while it is written: what lies in folders that agents may be writing to."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import stat
import tarfile
from dataclasses import dataclass, field
from io import BytesIO
from typing import IO, TYPE_CHECKING

from hallporter.domain.errors import UnavailableError
from hallporter.stores.manifest import ASIDE, DEEPEST, Member, stays_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PRIVATE_FILE = 0o600
_CHUNK = 1 << 16  # bytes
_COMPRESSION = 5
_BLOCK = 512  # bytes that `st_blocks` counts
_MOST_HOLES = 1 << 30  # bytes of a file that nobody has written
# Neither a link in the place of a file nor a pipe may hold the reader up.
_HOW = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Progress:
    """Never back, and never beyond the end."""

    def __init__(self, report: Callable[[int, int], None], *, total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        # Files appear while others are read: the estimate must not be passed.
        self._total = max(self._total, self._done)
        self._report(self._done, self._total)

    def finish(self) -> None:
        self._report(self._total, self._total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`entry` is what `name` is called in the open `folder`; a folder is found as its own `.`."""

    name: str
    entry: str
    folder: int
    status: os.stat_result


def walk(
    name: str,
    entry: Path | str,
    miss: Callable[[str, str], None],
    *,
    parent: int | None = None,
    depth: int = 0,
) -> Iterator[Found]:
    """A folder and all below it, through open folders and never along links; `miss` hears what
    could not be looked at, and why."""
    try:
        folder = os.open(entry, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return  # gone since it was seen
    except OSError as error:
        miss(name, _why(error))
        return
    try:
        yield Found(name=name, entry=".", folder=folder, status=os.fstat(folder))
        for inner in sorted(os.listdir(folder)):  # noqa: PTH208  a handle, not a path
            place = f"{name}/{inner}"
            try:
                status = os.stat(inner, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                miss(place, _why(error))
                continue
            if not stat.S_ISDIR(status.st_mode):
                yield Found(name=place, entry=inner, folder=folder, status=status)
            elif depth == DEEPEST:
                miss(place, f"more than {DEEPEST} folders deep")
            elif depth or not inner.startswith(ASIDE):
                yield from walk(place, inner, miss, parent=folder, depth=depth + 1)
    finally:
        os.close(folder)


@dataclass(slots=True)
class Packing:
    """What is in the archive so far, and what was left out."""

    progress: Progress
    members: list[Member] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    _links: dict[str, tuple[str, os.stat_result]] = field(default_factory=dict)
    _tar: tarfile.TarFile | None = None

    @contextlib.contextmanager
    def opened(self, number: int) -> Iterator[None]:
        """Into a file that is open for writing, and stays so."""
        with os.fdopen(number, "wb", closefd=False) as raw:
            with (
                gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=_COMPRESSION) as squeezed,
                tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as self._tar,
            ):
                yield
            raw.flush()
            os.fsync(number)

    def miss(self, name: str, why: str) -> None:
        self.left_out[name] = why

    def add(self, found: Found) -> None:
        """Whatever it is; links wait until all of them are known."""
        if stat.S_ISDIR(found.status.st_mode):
            self._put(_info(found.name, found.status, tarfile.DIRTYPE))
        elif stat.S_ISLNK(found.status.st_mode):
            self._add_link(found)
        else:
            self.add_file(found.name, found.entry, found.folder)

    def _add_link(self, found: Found) -> None:
        try:
            target = os.readlink(found.entry, dir_fd=found.folder)
        except FileNotFoundError:
            return  # gone since its folder was read
        except OSError:
            self.miss(found.name, "a link that was replaced while it was read")
            return
        self._links[found.name] = (target, found.status)

    def add_links(self) -> None:
        """Those that lead, through each other, to nothing outside of their folders."""
        targets = {name: target for name, (target, _) in self._links.items()}
        for name, (target, status) in self._links.items():
            if not stays_inside(name, targets):
                self.miss(name, "a link that leads out of its folder")
                continue
            info = _info(name, status, tarfile.SYMTYPE)
            info.linkname = target
            self._put(info)

    def add_file(self, name: str, entry: str, folder: int) -> None:
        """A file with the size that it has now, whatever is written to it meanwhile."""
        try:
            number = os.open(entry, _HOW, dir_fd=folder)
        except FileNotFoundError:
            return  # gone since its folder was read
        except OSError as error:
            self.miss(name, _why(error))
            return
        with os.fdopen(number, "rb", buffering=0) as reading:
            before = os.fstat(number)
            if not stat.S_ISREG(before.st_mode):
                self.miss(name, "neither a file nor a folder")
            elif _has_great_holes(number, before):
                self.miss(name, f"more than {_MOST_HOLES >> 30} GiB of it were never written")
            else:
                self._add(_info(name, before, tarfile.REGTYPE), reading, before)

    def add_words(self, name: str, words: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(words)
        info.mode = _PRIVATE_FILE
        self._put(info, BytesIO(words))

    def _add(self, info: tarfile.TarInfo, reading: IO[bytes], before: os.stat_result) -> None:
        info.size = before.st_size
        exact = _Exact(reading, self.progress)
        self._put(info, exact)
        after = os.fstat(reading.fileno())
        if exact.why:
            self.miss(info.name, f"in part: {exact.why}")
        elif (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            self.miss(info.name, "in part: it was changed while it was read")
        self.members.append(Member(name=info.name, size=info.size, sha256=exact.sum.hexdigest()))

    def _put(self, info: tarfile.TarInfo, content: BytesIO | _Exact | None = None) -> None:
        if self._tar is None:
            raise UnavailableError("the archive is not open")
        self._tar.addfile(info, content)


class _Exact:
    """As many bytes as are asked for: the archive has been told the size, and what is lacking by
    now is made up with zeros."""

    def __init__(self, reading: IO[bytes], progress: Progress) -> None:
        self._reading = reading
        self._progress = progress
        self.sum = hashlib.sha256()
        self.why = ""  # something is lacking

    def read(self, size: int = _CHUNK, /) -> bytes:
        data = b""
        while not self.why and len(data) < size:
            try:
                more = self._reading.read(size - len(data))
            except OSError as error:
                self.why = _why(error)
                break
            if not more:
                self.why = "it was changed while it was read"
            data += more
        data = data.ljust(size, b"\0")
        self.sum.update(data)
        self._progress.add(size)
        return data


def _has_great_holes(number: int, status: os.stat_result) -> bool:
    """Made in a moment, and read for days: a size is no proof that there is something."""
    if status.st_size - status.st_blocks * _BLOCK <= _MOST_HOLES:
        return False
    # Also what is squeezed by the file system takes fewer blocks: the holes themselves count.
    holes = here = 0
    try:
        while here < status.st_size and holes <= _MOST_HOLES:
            data = os.lseek(number, here, os.SEEK_DATA)
            holes += data - here
            here = os.lseek(number, data, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing but a hole from here on
            holes += status.st_size - here
    os.lseek(number, 0, os.SEEK_SET)
    return holes > _MOST_HOLES


def _info(name: str, status: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = stat.S_IMODE(status.st_mode) & 0o777
    info.mtime = int(status.st_mtime)
    return info


def _why(error: OSError) -> str:
    return error.strerror or str(error)
