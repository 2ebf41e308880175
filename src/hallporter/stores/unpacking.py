"""A backup read whole and checked, into a folder that is made for it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import tarfile
import zlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from hallporter.domain.errors import CorruptInputError, StoreRefusedError, UnavailableError
from hallporter.removal import remove
from hallporter.stores import migrations
from hallporter.stores.backup import examine
from hallporter.stores.manifest import (
    DATABASE,
    FILES,
    MANIFEST,
    Manifest,
    Member,
    decode_manifest,
    is_ours,
    stays_inside,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600
_CHUNK = 1 << 20  # bytes
_MAX_MANIFEST = 256 << 20  # bytes
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_VISITS = ("sessions", "links")  # tables: browsers that are logged in, and ways to log in


def read_backup(file: Path, into: Path, *, report: Callable[[int, int], None]) -> Manifest:
    """Unpack into a folder that is made for it, and check every file against the manifest. Nobody
    is logged in there: who was logged out since the backup was made must stay so.

    Raises `CorruptInputError` or `UnavailableError`; then nothing is left of the folder.
    """
    with contextlib.ExitStack() as unless_it_works:
        try:
            with file.open("rb") as raw:
                into.mkdir(mode=_PRIVATE)
                unless_it_works.callback(remove, into)
                manifest = _unpack(file, raw, into, report)
            _check_database(into / DATABASE, manifest)
            _log_out(into / DATABASE)
        except (tarfile.TarError, zlib.error, EOFError) as error:
            raise CorruptInputError(f"{file} is not a whole backup: {error}") from error
        except (ValueError, OverflowError) as error:
            # Numbers in an archive's headers that are none, or beyond all bounds.
            raise CorruptInputError(f"{file} is damaged: {error}") from error
        except sqlite3.Error as error:
            raise CorruptInputError(f"the database in {file} is damaged: {error}") from error
        except FileNotFoundError as error:
            raise UnavailableError(f"there is no file {error.filename}") from error
        except OSError as error:
            message = f"{file} could not be unpacked: {error.strerror or error}"
            raise UnavailableError(message) from error
        unless_it_works.pop_all()
    return manifest


@dataclass(slots=True)
class _Unpacking:
    """What came out so far; `top` is the open folder that it goes into."""

    top: int
    found: dict[str, Member] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    manifest: Manifest | None = None
    _names: set[str] = field(default_factory=set)
    _folders: set[str] = field(default_factory=lambda: {""})

    def take(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        name = info.name
        if not is_ours(name):
            raise CorruptInputError(f"the backup holds {name!r}, which is no part of a home")
        if name in self._names:
            raise CorruptInputError(f"the backup holds {name!r} twice")
        self._names.add(name)
        is_single = name in (*FILES, DATABASE, MANIFEST)
        if info.isdir() and not is_single:
            self._make_folder(info)
        elif info.issym() and not is_single:
            self.links[name] = info.linkname
        elif (
            info.isreg() and not info.issparse() and (content := tar.extractfile(info)) is not None
        ):
            if name == MANIFEST:
                self.manifest = decode_manifest(content.read(_MAX_MANIFEST))
            else:
                self._write(info, content)
        else:
            raise CorruptInputError(f"the backup holds {name!r}, which is no file of ours")

    def add_links(self) -> None:
        """Last: nothing can be written along one of them."""
        for name, target in self.links.items():
            if not stays_inside(name, self.links):
                raise CorruptInputError(f"the backup holds {name!r}, a link out of its folder")
            with self._folder_of(name) as (folder, last):
                os.symlink(target, last, dir_fd=folder)

    def _make_folder(self, info: tarfile.TarInfo) -> None:
        if info.name.startswith("data/") and "data" not in self._folders:
            os.mkdir("data", dir_fd=self.top)
            self._folders.add("data")
        with self._folder_of(info.name) as (folder, last):
            os.mkdir(last, mode=info.mode & 0o777 | _PRIVATE, dir_fd=folder)
        self._folders.add(info.name)

    def _write(self, info: tarfile.TarInfo, content: IO[bytes]) -> None:
        mode = info.mode & 0o777 if "/" in info.name else _PRIVATE_FILE
        known = hashlib.sha256()
        size = 0
        with self._folder_of(info.name) as (folder, last):
            number = os.open(last, _NEW_FILE, mode, dir_fd=folder)
        with os.fdopen(number, "wb") as writing:
            while data := content.read(_CHUNK):
                known.update(data)
                size += len(data)
                if data.count(0) == len(data):
                    writing.seek(size)  # a hole takes no room
                else:
                    writing.write(data)
            writing.truncate(size)
            writing.flush()
            os.utime(number, (info.mtime, info.mtime))
            os.fsync(number)
        self.found[info.name] = Member(name=info.name, size=size, sha256=known.hexdigest())

    @contextlib.contextmanager
    def _folder_of(self, name: str) -> Iterator[tuple[int, str]]:
        """The open folder of a member, step by step: no length of a path and no link counts."""
        *steps, last = name.split("/")
        if "/".join(steps) not in self._folders:
            raise CorruptInputError(f"the backup holds {name!r}, but not the folder that it is in")
        here = os.dup(self.top)
        try:
            for step in steps:
                inner = os.open(step, _FOLDER, dir_fd=here)
                os.close(here)
                here = inner
            yield here, last
        finally:
            os.close(here)


def _unpack(file: Path, raw: IO[bytes], into: Path, report: Callable[[int, int], None]) -> Manifest:
    size = os.fstat(raw.fileno()).st_size
    with contextlib.ExitStack() as closing:
        top = os.open(into, _FOLDER)
        closing.callback(os.close, top)
        unpacking = _Unpacking(top)
        with tarfile.open(fileobj=raw, mode="r|gz") as tar:
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
        unpacking.add_links()
    return manifest


def _check_database(database: Path, manifest: Manifest) -> None:
    if not database.exists():
        raise CorruptInputError("the backup holds no database")
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


def _log_out(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as writing, writing:
        tables = {row[0] for row in writing.execute("SELECT name FROM sqlite_master")}
        for table in tables.intersection(_VISITS):
            writing.execute(f"DELETE FROM {table}")  # noqa: S608  a name of ours
