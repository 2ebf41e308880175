"""The files of an SQLite database without a trace of what was deleted."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_PATIENCE = 1000  # milliseconds for whoever reads just now: writers wait behind us


def scrub_files(connection: sqlite3.Connection) -> bool:
    """False when someone holds an older state open, so that the log cannot be emptied.

    `secure_delete` alone is not enough: rows that were moved between pages before they were deleted
    have left copies in the unused part of a page. Only a rewrite has no such parts.
    """
    with _patient(connection):
        # Looked at first: the rewrite costs as much as the database is large.
        if not _empty_log(connection):
            return False
        connection.execute("VACUUM")
        return _empty_log(connection)


def _empty_log(connection: sqlite3.Connection) -> bool:
    is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


@contextlib.contextmanager
def _patient(connection: sqlite3.Connection) -> Iterator[None]:
    before = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {before}")
