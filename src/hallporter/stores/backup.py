"""The whole house in one file, written beside a running host and without its help."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.errors import ConflictError, InvalidRequestError, UnavailableError
from hallporter.stores.manifest import (
    DATABASE,
    FILES,
    MANIFEST,
    TREES,
    Manifest,
    encode_manifest,
)
from hallporter.stores.packing import Packing, Progress, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

COMPANIONS = ("-wal", "-shm", "-journal")  # of a database that was not closed
_PRIVATE_FILE = 0o600
_PAGES = 1000  # of the database between two reports
_BUSY_TIMEOUT = 30.0  # seconds
# What SQLite says when the copy cannot be written; what it reads from is well.
_NOT_WRITTEN = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
)


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
    try:
        with _claimed(part) as number:
            manifest, progress = _write(
                number, part, source, version=version, made_at=made_at, report=report
            )
            part.replace(file)
            _sync(file.parent)
            progress.finish()
    except OSError as error:
        raise _unwritten(file, error.strerror or str(error)) from error
    except sqlite3.Error as error:
        if error.sqlite_errorcode in _NOT_WRITTEN:
            raise _unwritten(file, str(error)) from error
        message = f"the database {source.database} could not be read: {error}"
        raise UnavailableError(message) from error
    return manifest


def _unwritten(file: Path, why: str) -> UnavailableError:
    return UnavailableError(f"the backup {file} could not be written: {why}")


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


@contextlib.contextmanager
def _claimed(part: Path) -> Iterator[int]:
    """The unfinished file, ours alone; it goes unless it was renamed. What a killed backup has left
    is taken over: its lock went with it."""
    while True:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, _PRIVATE_FILE)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(number)
            message = (
                f"another backup is being written to {part}: wait for it, or name another file"
            )
            raise ConflictError(message) from error
        if _is_still(part, number):
            break
        os.close(number)  # renamed by another backup, that has just become whole
    try:
        os.fchmod(number, _PRIVATE_FILE)
        os.ftruncate(number, 0)
        yield number
    finally:
        if _is_still(part, number):
            part.unlink()
        os.close(number)


def _is_still(part: Path, number: int) -> bool:
    try:
        return os.path.samestat(part.lstat(), os.fstat(number))
    except FileNotFoundError:
        return False


def _write(
    number: int,
    part: Path,
    source: Source,
    *,
    version: str,
    made_at: str,
    report: Callable[[int, int], None],
) -> tuple[Manifest, Progress]:
    progress = Progress(report, total=_estimate(source))
    packing = Packing(progress)
    with contextlib.ExitStack() as cleaning:
        # Gone before the name of `part` is free for the next one, who makes it anew.
        snapshot = part.with_name(f"{part.name}.db")
        cleaning.callback(snapshot.unlink, missing_ok=True)
        _take_snapshot(source.database, snapshot, progress)
        schema, rows = examine(snapshot)
        with packing.opened(number):
            packing.add_file(DATABASE, snapshot.name, _folder(snapshot.parent, cleaning))
            _add_home(packing, source)
            packing.add_links()
            manifest = Manifest(
                version=version,
                made_at=made_at,
                schema=schema,
                rows=rows,
                members=tuple(packing.members),
                left_out=packing.left_out,
            )
            packing.add_words(MANIFEST, encode_manifest(manifest))
    return manifest, progress


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


def _estimate(source: Source) -> int:
    # The database is gone through twice: taken, then packed.
    size = 2 * source.database.stat().st_size
    for tree, top in _trees(source.home):
        for found in walk(tree, top, _overlook):
            if stat.S_ISREG(found.status.st_mode):
                size += found.status.st_size
    return size


def _overlook(_name: str, _why: str) -> None:
    """It is told when the file's turn comes."""


def _take_snapshot(database: Path, snapshot: Path, progress: Progress) -> None:
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


def _add_home(packing: Packing, source: Source) -> None:
    with contextlib.ExitStack() as closing:
        here = _folder(source.home, closing)
        for name in FILES:
            packing.add_file(name, name, here)
    # It may lie in one of the trees; there it is in the middle of something.
    database = source.database.resolve()
    apart = {f"{database}{end}" for end in ("", *COMPANIONS)}
    for tree, top in _trees(source.home):
        for found in walk(tree, top, packing.miss):
            if f"{top}{found.name.removeprefix(tree)}" not in apart:
                packing.add(found)


def _trees(home: Path) -> Iterator[tuple[str, Path]]:
    """Those that are there; the operator may have put one elsewhere, behind a link."""
    for tree in TREES:
        top = (home / tree).resolve()
        if top.is_dir():
            yield tree, top


def _folder(path: Path, closing: contextlib.ExitStack) -> int:
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    closing.callback(os.close, number)
    return number


def _sync(folder: Path) -> None:
    with contextlib.ExitStack() as closing:
        os.fsync(_folder(folder, closing))
