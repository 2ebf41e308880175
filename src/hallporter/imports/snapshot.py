"""Another program's SQLite file at one moment: a private copy, nothing left beside it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError
from hallporter.imports.place import entered, open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

LONGEST = 1 << 18  # bytes of one value

_MAGIC = b"SQLite format 3\x00"
_SEVERAL = bytes.fromhex("d9d505f920a163d7")  # how a journal ends that names another file
_BESIDE = ("-wal", "-journal")
_PATIENCE = 20.0  # seconds that a program which still runs may hold the file
_LOOK_AGAIN = 0.05  # seconds
# Where SQLite's readers and writers exclude each other.
_PENDING = (1, 0x40000000)
_SHARED = (510, 0x40000002)
_CHUNK = 1 << 20  # bytes
_SPARE = 1 << 28  # bytes of the disk that a copy leaves free
_STEPS = 10_000  # of a query, between two looks at whether it should end


@contextlib.contextmanager
def snapshot(top: int, file: Path, folder: Path, stopping: Event) -> Iterator[sqlite3.Connection]:
    """`file` is below the folder of the handle `top`; the copy lies in our own `folder`. Raises
    `InvalidRequestError` when it is no database, or cannot be read."""
    copy = folder / "copy.db"
    try:
        with entered(top, file.parent.parts) as store:
            if store is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            _copy(file.name, store, copy, stopping)
        connection = sqlite3.connect(copy, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise _unreadable(file, error) from error
    with contextlib.closing(connection):
        # Text that is not UTF-8 is no reason to lose the row.
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.row_factory = sqlite3.Row
        connection.set_progress_handler(stopping.is_set, _STEPS)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT COUNT(*) FROM sqlite_master")
        except sqlite3.Error as error:
            raise _unreadable(file, error) from error
        yield connection


def _copy(name: str, store: int, copy: Path, stopping: Event) -> None:
    """File by file, under the lock of a reader: to open it with SQLite could write beside it."""
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(open_file(name, store))
        head = source.read(len(_MAGIC))
        if head and head != _MAGIC:
            raise sqlite3.DatabaseError("it is no SQLite file")
        source.seek(0)
        _lock(source.fileno(), stopping)
        parts = {"": source}
        for beside in _BESIDE:
            with contextlib.suppress(FileNotFoundError):
                parts[beside] = stack.enter_context(open_file(name + beside, store))
        size = sum(os.fstat(part.fileno()).st_size for part in parts.values())
        if size + _SPARE > shutil.disk_usage(copy.parent).free:
            raise OSError(errno.ENOSPC, f"there is no room for a copy ({size:,} bytes)")
        for beside, part in parts.items():
            with copy.with_name(copy.name + beside).open("wb") as target:
                while chunk := part.read(_CHUNK):
                    target.write(chunk)
                    if stopping.is_set():
                        raise OSError(errno.ECANCELED, "the import was ended")
    _check_journal(copy.with_name(f"{copy.name}-journal"))


def _lock(file: int, stopping: Event) -> None:
    """Until the file is closed; as SQLite does it, so that nobody writes meanwhile."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, *_PENDING)
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, *_SHARED)
        except (BlockingIOError, PermissionError):
            if stopping.wait(_LOOK_AGAIN) or time.monotonic() > deadline:
                message = "another program holds it: stop that one first"
                raise OSError(errno.EBUSY, message) from None
        else:
            return
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN, *_PENDING)


def _check_journal(journal: Path) -> None:
    """What half a transaction over several files leaves names a file that SQLite would remove."""
    with contextlib.suppress(FileNotFoundError), journal.open("rb") as file:
        if os.fstat(file.fileno()).st_size >= len(_SEVERAL):
            file.seek(-len(_SEVERAL), os.SEEK_END)
            if file.read() == _SEVERAL:
                raise sqlite3.DatabaseError("its journal is shared with another database")


def _unreadable(file: Path, error: Exception) -> InvalidRequestError:
    why = getattr(error, "strerror", None) or str(error)
    return InvalidRequestError(f"{file} cannot be read: {why}", field="path", value=str(file))
