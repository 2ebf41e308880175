"""What SQLite's errors mean for us: the disk under the file is told from the file itself."""

from __future__ import annotations

import sqlite3

from hallporter.domain.errors import ConflictError, DiskError, StoreUnavailableError

_FULL = "the disk is full: make room where the database lies"
_BROKEN = "the disk does not work: look at the kernel's log (dmesg)"
_EITHER = "the disk is full or does not work: make room where the database lies, or look at dmesg"

# Told for want of room, too: the files beside the database could not be made or grow.
_GROWING = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
)


def disk_trouble(error: Exception) -> str:
    """What is wrong with the disk and what to do; empty when the error is not about the disk."""
    # Only errors that come from SQLite itself have a code; its low byte is the kind of it.
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _GROWING:
        return _EITHER
    return {sqlite3.SQLITE_FULL: _FULL, sqlite3.SQLITE_IOERR: _BROKEN}.get(code & 0xFF, "")


def translated(error: sqlite3.Error) -> ConflictError | StoreUnavailableError:
    """Of a read or a write."""
    if isinstance(error, sqlite3.IntegrityError):
        return ConflictError(f"the database refused the write: {error}")
    if why := disk_trouble(error):
        return DiskError(f"the database did not take the write: {why}")
    return StoreUnavailableError(f"the database did not take the write: {error}")
