"""Another program's SQLite file at one moment: a private copy, nothing left beside it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"SQLite format 3\x00"
_WAL = 2  # in the two bytes behind the page size
_PATIENCE = 10.0  # seconds that a program which still runs may hold the file
_BESIDE = ("-wal", "-journal")


@contextlib.contextmanager
def snapshot(file: Path) -> Iterator[sqlite3.Connection]:
    """Raises `InvalidRequestError` when it is no database, or cannot be read."""
    with tempfile.TemporaryDirectory(prefix="hallporter-import-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            _copy(file, copy)
            connection = sqlite3.connect(copy, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise _unreadable(file, error) from error
        with contextlib.closing(connection):
            # Text that is not UTF-8 is no reason to lose the row.
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.row_factory = sqlite3.Row
            try:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("SELECT COUNT(*) FROM sqlite_master")
            except sqlite3.Error as error:
                raise _unreadable(file, error) from error
            yield connection


def _copy(file: Path, copy: Path) -> None:
    """Under the reader's lock where that leaves no trace; else file by file: to open a database
    that keeps its newest part in another file would write beside it."""
    with file.open("rb") as opened:
        head = opened.read(20)
    if head and not head.startswith(_MAGIC):
        raise sqlite3.DatabaseError("it is no SQLite file")
    beside = [part for part in _BESIDE if file.with_name(file.name + part).exists()]
    if not beside and head and head[18] != _WAL:
        source = f"{file.absolute().as_uri()}?mode=ro"
        with (
            contextlib.closing(sqlite3.connect(source, uri=True, timeout=_PATIENCE)) as original,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            original.backup(target)
        return
    for part in ("", *beside):
        shutil.copyfile(file.with_name(file.name + part), copy.with_name(copy.name + part))


def _unreadable(file: Path, error: Exception) -> InvalidRequestError:
    why = getattr(error, "strerror", None) or str(error)
    return InvalidRequestError(f"{file} cannot be read: {why}", field="path", value=str(file))
