"""A backup put back: read whole and checked first, then moved into place."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import tarfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hallporter.domain.errors import (
    ConflictError,
    CorruptInputError,
    StoreRefusedError,
    UnavailableError,
)
from hallporter.stores import migrations
from hallporter.stores.backup import examine
from hallporter.stores.manifest import (
    DATABASE,
    DEEPEST,
    MANIFEST,
    Manifest,
    Member,
    decode_manifest,
    is_ours,
    stays_inside,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600
_CHUNK = 1 << 20  # bytes
_MAX_MANIFEST = 256 << 20  # bytes
_ASIDE = "before-restore-"
# What stays where it is: the lock is held, and what happened is no part of a backup.
_STAYS = ("run", "logs")
_COMPANIONS = ("-wal", "-shm", "-journal")  # of a database that was not closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """The folders that hold what was there before; a database in the home went with the home."""

    home: Path | None = None
    database: Path | None = None


def read_backup(file: Path, into: Path, *, report: Callable[[int, int], None]) -> Manifest:
    """Unpack into a folder that is made for it, and check every file against the manifest.

    Raises `CorruptInputError` or `UnavailableError`; then nothing is left of the folder.
    """
    with contextlib.ExitStack() as unless_it_works:
        unless_it_works.callback(shutil.rmtree, into, ignore_errors=True)
        try:
            manifest = _unpack(file, into, report)
            _check_database(into / DATABASE, manifest)
        except (tarfile.TarError, zlib.error, EOFError) as error:
            raise CorruptInputError(f"{file} is not a whole backup: {error}") from error
        except sqlite3.Error as error:
            raise CorruptInputError(f"the database in {file} is damaged: {error}") from error
        except FileNotFoundError as error:
            raise UnavailableError(f"there is no file {error.filename}") from error
        except OSError as error:
            message = f"{file} could not be unpacked: {error.strerror or error}"
            raise UnavailableError(message) from error
        unless_it_works.pop_all()
    return manifest


def occupants(home: Path) -> Sequence[str]:
    """What stands in the way of a restore: everything that is not an empty folder."""
    return [
        entry.name
        for entry in sorted(home.iterdir())
        if entry.name not in _STAYS and not entry.name.startswith(_ASIDE) and not _is_empty(entry)
    ]


def put_in_place(unpacked: Path, home: Path, *, database: Path, stamp: str) -> Aside:
    """Move what was unpacked into the home; what was there before is moved aside.

    `database` is where the settings want it. The store comes last: a host finds all, or none.
    """
    name = f"{_ASIDE}{stamp}"
    # First what may lie on another disk, under other permissions: then nothing else has moved yet.
    beside = None if database.is_relative_to(home) else _set_aside(database, name)
    aside = home / name
    moved = False
    for entry in sorted(home.iterdir()):
        if entry.name in _STAYS or entry.name.startswith(_ASIDE):
            continue
        if _is_empty(entry):
            shutil.rmtree(entry)
            continue
        aside.mkdir(mode=_PRIVATE, exist_ok=True)
        entry.rename(aside / entry.name)
        moved = True
    for entry in sorted(unpacked.iterdir()):
        if entry.name != DATABASE:
            entry.rename(home / entry.name)
    database.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    shutil.move(unpacked / DATABASE, database)
    unpacked.rmdir()
    return Aside(home=aside if moved else None, database=beside)


def _set_aside(database: Path, name: str) -> Path | None:
    """Into a folder beside it and under its own names: SQLite finds a log by the name alone."""
    files = [database, *(Path(f"{database}{end}") for end in _COMPANIONS)]
    there = [file for file in files if file.exists()]
    if not there:
        return None
    beside = database.parent / name
    beside.mkdir(mode=_PRIVATE, exist_ok=True)
    for file in reversed(there):  # the database last: cut short before, it is still found
        file.rename(beside / file.name)
    return beside


def refuse_occupied(home: Path, database: Path) -> None:
    """Raises `ConflictError` naming what is in the way."""
    found = list(occupants(home))
    if database.exists() and not database.is_relative_to(home):
        found.append(str(database))
    if found:
        raise ConflictError(
            f"the home {home} is not empty ({', '.join(found)}): name another one with --home,"
            " or say --force to move aside what is there"
        )


def refuse_in_use(database: Path) -> None:
    """Raises `ConflictError` when another program has the database open: a host of another home
    may, whose lock is not ours to see."""
    if not database.exists():
        return
    with contextlib.closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as trying:
        try:
            trying.execute("PRAGMA locking_mode = EXCLUSIVE")
            trying.execute("BEGIN EXCLUSIVE")
            trying.execute("ROLLBACK")
        except sqlite3.Error as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                return  # damaged, or not a database at all: nobody can use it
            raise ConflictError(
                f"the database {database} is in use: another host, or another program, has it"
                " open. Stop that one first, or have this home's database elsewhere:"
                " HALLPORTER_STORE__URL=sqlite:////ANOTHER/PLACE.db"
            ) from error


def _is_empty(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return False
    for where, _, files in os.walk(path):
        # Agents may have dug deeper than we can follow: that is something, too.
        if files or where.count("/") - str(path).count("/") > DEEPEST:
            return False
    return True


@dataclass(slots=True)
class _Unpacking:
    into: Path
    found: dict[str, Member] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    manifest: Manifest | None = None

    def take(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        if not is_ours(info.name):
            raise CorruptInputError(f"the backup holds {info.name!r}, which is no part of a home")
        if info.isdir():
            (self.into / info.name).mkdir(mode=info.mode & 0o777 | _PRIVATE, parents=True)
        elif info.issym() and stays_inside(info.name, info.linkname):
            self.links.append((info.name, info.linkname))
        elif info.isreg() and (content := tar.extractfile(info)) is not None:
            if info.name == MANIFEST:
                self.manifest = decode_manifest(content.read(_MAX_MANIFEST))
            else:
                self._write(info, content)
        else:
            raise CorruptInputError(f"the backup holds {info.name!r}, which is no file of ours")

    def _write(self, info: tarfile.TarInfo, content: IO[bytes]) -> None:
        path = self.into / info.name
        mode = info.mode & 0o777 if "/" in info.name else _PRIVATE_FILE
        # The folder is new and ours, and links come last: no name can lead out of it.
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        known = hashlib.sha256()
        size = 0
        with os.fdopen(number, "wb") as writing:
            while data := content.read(_CHUNK):
                known.update(data)
                size += len(data)
                writing.write(data)
            writing.flush()
            os.fsync(writing.fileno())
        os.utime(path, (info.mtime, info.mtime))
        self.found[info.name] = Member(name=info.name, size=size, sha256=known.hexdigest())


def _unpack(file: Path, into: Path, report: Callable[[int, int], None]) -> Manifest:
    into.mkdir(mode=_PRIVATE)
    unpacking = _Unpacking(into)
    size = file.stat().st_size
    with file.open("rb") as raw, tarfile.open(fileobj=raw, mode="r|gz") as tar:
        for info in tar:
            unpacking.take(tar, info)
            report(min(raw.tell(), size), size)
    manifest = unpacking.manifest
    if manifest is None:
        raise CorruptInputError(f"{file} is not a whole backup: it ends without a manifest")
    told = {member.name: member for member in manifest.members}
    if told != unpacking.found:
        wrong = sorted(
            name
            for name in told.keys() | unpacking.found.keys()
            if told.get(name) != unpacking.found.get(name)
        )
        raise CorruptInputError(f"{file} is damaged: {', '.join(wrong[:5])} is not as it was")
    for name, target in unpacking.links:
        (into / name).symlink_to(target)
    return manifest


def _check_database(database: Path, manifest: Manifest) -> None:
    known = migrations.load("sqlite")
    if manifest.schema > known[-1].number:
        raise CorruptInputError(
            f"the backup has schema {manifest.schema}, this version knows {known[-1].number}: it"
            f" was written by Hallporter {manifest.version}; install that one"
        )
    if examine(database) != (manifest.schema, manifest.rows):
        raise CorruptInputError("the database does not hold what the manifest says")
    with contextlib.closing(sqlite3.connect(database)) as reading:
        applied = dict(reading.execute("SELECT number, sha256 FROM schema_version").fetchall())
    try:
        migrations.outstanding(known, applied)
    except StoreRefusedError as error:
        message = f"the backup was written by Hallporter {manifest.version}: {error.message}"
        raise StoreRefusedError(message, **error.facts) from error
