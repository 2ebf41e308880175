"""The whole house in one file, written beside a running host and without its help."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import sqlite3
import stat
import tarfile
import tempfile
import zlib
from dataclasses import dataclass, field
from io import BytesIO
from typing import IO, TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError, UnavailableError
from hallporter.stores.manifest import (
    ASIDE,
    DATABASE,
    DEEPEST,
    FILES,
    MANIFEST,
    TREES,
    Manifest,
    Member,
    encode_manifest,
    stays_inside,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_PRIVATE_FILE = 0o600
_CHUNK = 1 << 20  # bytes
_IN_MEMORY = 8 << 20  # bytes of one file, before it is spooled to the disk
_PAGES = 1000  # of the database between two reports
_COMPRESSION = 5
_BUSY_TIMEOUT = 30.0  # seconds
# Neither a link in the place of a file nor a pipe may hold the reader up.
_HOW = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is backed up: the home, and the database, which may lie elsewhere."""

    home: Path
    database: Path


def write_backup(
    file: Path,
    source: Source,
    *,
    version: str,
    made_at: str,
    report: Callable[[int, int], None],
    is_forced: bool = False,
) -> Manifest:
    """`file` appears when it is whole, or not at all; `report` hears bytes done and in all. What is
    there is replaced if it is a backup; another file only when it `is_forced`.

    Raises `InvalidRequestError` or `UnavailableError`.
    """
    file = file.absolute()
    _check_place(file, source)
    if not is_forced and not _is_replaceable(file):
        raise InvalidRequestError(
            f"{file} is there and is no backup: name another file, or say --force to overwrite it"
        )
    part = file.with_name(f"{file.name}.part")
    snapshot = file.with_name(f"{file.name}.part.db")
    try:
        with contextlib.ExitStack() as cleaning:
            for path in (part, snapshot):
                cleaning.callback(path.unlink, missing_ok=True)
            progress = _Progress(report, total=_estimate(source))
            _take_snapshot(source.database, snapshot, progress)
            schema, rows = examine(snapshot)
            packing = _Packing(part, spool=file.parent, progress=progress)
            with packing.opened():
                packing.add_file(DATABASE, snapshot.name, _folder(snapshot.parent, cleaning))
                _add_home(packing, source.home)
                manifest = Manifest(
                    version=version,
                    made_at=made_at,
                    schema=schema,
                    rows=rows,
                    members=tuple(packing.members),
                    left_out=packing.left_out,
                )
                packing.add_words(MANIFEST, encode_manifest(manifest))
            part.replace(file)
            _sync(file.parent)
            progress.finish()
    except OSError as error:
        message = f"the backup {file} could not be written: {error.strerror or error}"
        raise UnavailableError(message) from error
    except sqlite3.Error as error:
        message = f"the database {source.database} could not be read: {error}"
        raise UnavailableError(message) from error
    return manifest


def examine(database: Path) -> tuple[int, Mapping[str, int]]:
    """The schema of a database that nobody uses, and the rows of each table; checks it whole."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        findings = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
        if findings != ["ok"]:
            raise sqlite3.DatabaseError("; ".join(findings))
        schema = connection.execute("SELECT MAX(number) FROM schema_version").fetchone()[0]
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master"
                " WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            )
        ]
        rows = {
            # The names come from the database itself.
            table: connection.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0]  # noqa: S608
            for table in tables
        }
    return schema, rows


def _check_place(file: Path, source: Source) -> None:
    if file.is_dir():
        raise InvalidRequestError(f"{file} is a folder: name a file in it")
    if file.exists() and not file.is_file():
        raise InvalidRequestError(f"{file} is a device or a pipe: name a file")
    if not file.parent.is_dir():
        raise InvalidRequestError(f"there is no folder {file.parent}: make it first")
    where = file.parent.resolve()
    if any(where.is_relative_to((source.home / tree).resolve()) for tree in TREES):
        raise InvalidRequestError(f"{file} would be part of itself: name a file outside of it")
    if not source.database.exists():
        raise InvalidRequestError(f"there is no database {source.database}: nothing to back up")


def _is_replaceable(file: Path) -> bool:
    """Nothing, an empty file, or a backup, whole or not: each begins with the database."""
    if not file.exists() or not file.stat().st_size:
        return True
    try:
        with tarfile.open(file, "r|gz") as tar:
            first = tar.next()
    except (tarfile.TarError, zlib.error, EOFError, OSError):
        return False
    return first is not None and first.name == DATABASE


class _Progress:
    def __init__(self, report: Callable[[int, int], None], *, total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        # Files grow while they are read: the estimate must not be passed.
        self._total = max(self._total, self._done)
        self._report(self._done, self._total)

    def finish(self) -> None:
        self._report(self._total, self._total)


def _estimate(source: Source) -> int:
    # The database is gone through twice: taken, then packed.
    size = 2 * source.database.stat().st_size
    for _, top in _trees(source.home):
        for _, _, files, here in _walk(top):
            for name in files:
                with contextlib.suppress(OSError):
                    size += os.stat(name, dir_fd=here, follow_symlinks=False).st_size
    return size


def _take_snapshot(database: Path, snapshot: Path, progress: _Progress) -> None:
    """One moment of the database, however much is written meanwhile."""
    snapshot.unlink(missing_ok=True)
    snapshot.touch(mode=_PRIVATE_FILE)  # SQLite would let everyone read it
    with (
        contextlib.closing(sqlite3.connect(database, timeout=_BUSY_TIMEOUT)) as reading,
        contextlib.closing(sqlite3.connect(snapshot)) as writing,
    ):
        reading.execute("PRAGMA query_only = ON")
        page = reading.execute("PRAGMA page_size").fetchone()[0]
        # An open read keeps the copy at this moment: without it each write would start it anew.
        reading.execute("BEGIN")
        reading.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        before: int | None = None

        def told(_status: int, remaining: int, total: int) -> None:
            nonlocal before
            progress.add(page * ((total if before is None else before) - remaining))
            before = remaining

        reading.backup(writing, pages=_PAGES, progress=told)
        writing.execute("PRAGMA journal_mode = DELETE")  # one file, and nothing beside it


@dataclass(slots=True)
class _Packing:
    """The archive while it is written."""

    part: Path
    spool: Path
    progress: _Progress
    members: list[Member] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    _tar: tarfile.TarFile | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        number = os.open(
            self.part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _PRIVATE_FILE
        )
        with os.fdopen(number, "wb") as raw:
            with (
                gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=_COMPRESSION) as squeezed,
                tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as self._tar,
            ):
                yield
            raw.flush()
            os.fsync(raw.fileno())

    def add_folder(self, name: str, found: os.stat_result) -> None:
        self._put(_info(name, found, tarfile.DIRTYPE))

    def add_link(self, name: str, target: str, found: os.stat_result) -> None:
        if not stays_inside(name, target):
            self.left_out[name] = "a link that leads out of its folder"
            return
        info = _info(name, found, tarfile.SYMTYPE)
        info.linkname = target
        self._put(info)

    def add_file(self, name: str, entry: str, folder: int) -> None:
        """A file as it is now; one that is written meanwhile is taken up to its present end."""
        try:
            number = os.open(entry, _HOW, dir_fd=folder)
        except FileNotFoundError:
            return  # gone since its folder was read
        except OSError as error:
            self.left_out[name] = str(error.strerror)
            return
        with os.fdopen(number, "rb") as reading:
            found = os.fstat(reading.fileno())
            if not stat.S_ISREG(found.st_mode):
                self.left_out[name] = "neither a file nor a folder"
                return
            # Copied first: the archive wants to know the size before the first byte.
            with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(self.spool)) as copy:
                self._add(_info(name, found, tarfile.REGTYPE), reading, copy)

    def add_words(self, name: str, words: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(words)
        info.mode = _PRIVATE_FILE
        self._put(info, BytesIO(words))

    def _add(self, info: tarfile.TarInfo, reading: IO[bytes], copy: IO[bytes]) -> None:
        known = hashlib.sha256()
        while data := reading.read(_CHUNK):
            known.update(data)
            copy.write(data)
            info.size += len(data)
        copy.seek(0)
        self._put(info, copy)
        self.progress.add(info.size)
        self.members.append(Member(name=info.name, size=info.size, sha256=known.hexdigest()))

    def _put(self, info: tarfile.TarInfo, content: IO[bytes] | None = None) -> None:
        if self._tar is None:
            raise UnavailableError("the archive is not open")
        self._tar.addfile(info, content)


def _add_home(packing: _Packing, home: Path) -> None:
    with contextlib.ExitStack() as closing:
        here = _folder(home, closing)
        for name in FILES:
            packing.add_file(name, name, here)
    for tree, top in _trees(home):
        _add_tree(packing, tree, top)


def _trees(home: Path) -> Iterator[tuple[str, Path]]:
    """Those that are there; the operator may have put one elsewhere, behind a link."""
    for tree in TREES:
        top = (home / tree).resolve()
        if top.is_dir():
            yield tree, top


def _add_tree(packing: _Packing, tree: str, top: Path) -> None:
    for where, folders, files, here in _walk(top):
        place = f"{tree}{where}"
        packing.add_folder(place, os.fstat(here))
        for entry in sorted((*folders, *files)):
            name = f"{place}/{entry}"
            try:
                found = os.stat(entry, dir_fd=here, follow_symlinks=False)
                target = os.readlink(entry, dir_fd=here) if stat.S_ISLNK(found.st_mode) else None
            except FileNotFoundError:
                continue
            if target is not None:
                packing.add_link(name, target, found)
            elif not stat.S_ISDIR(found.st_mode):
                packing.add_file(name, entry, here)
            elif where.count("/") == DEEPEST:
                packing.left_out[name] = f"more than {DEEPEST} folders deep"


def _walk(top: Path) -> Iterator[tuple[str, list[str], list[str], int]]:
    """Through open folders and never along links, and not for ever deeper: agents write here."""
    for path, folders, files, here in os.fwalk(top, follow_symlinks=False):
        where = path.removeprefix(str(top))
        if not where:
            folders[:] = [name for name in folders if not name.startswith(ASIDE)]
        yield where, list(folders), files, here
        if where.count("/") >= DEEPEST:
            folders.clear()


def _info(name: str, found: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = stat.S_IMODE(found.st_mode) & 0o777
    info.mtime = int(found.st_mtime)
    return info


def _folder(path: Path, closing: contextlib.ExitStack) -> int:
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    closing.callback(os.close, number)
    return number


def _sync(folder: Path) -> None:
    with contextlib.ExitStack() as closing:
        os.fsync(_folder(folder, closing))
