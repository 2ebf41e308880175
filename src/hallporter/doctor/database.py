"""The database file: whether it is whole."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.finding import Finding, good, problem
from hallporter.stores.refusals import disk_trouble

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = "database"
_PATIENCE = 5.0  # seconds that another may hold the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """`damage` is what SQLite says of it; `is_locked` that it could not say anything, and
    `disk` that it is the disk's fault."""

    path: Path
    exists: bool
    is_file: bool = True
    damage: tuple[str, ...] = ()
    is_locked: bool = False
    disk: str = ""


def look(path: Path) -> Database:
    """Reads the whole file: not for the event loop's thread."""
    if not path.exists():
        return Database(path=path, exists=False)
    if not path.is_file():
        return Database(path=path, exists=True, is_file=False)
    try:
        opened = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)
        with contextlib.closing(opened) as connection:
            told = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    except sqlite3.OperationalError as error:
        if disk := disk_trouble(error):
            return Database(path=path, exists=True, disk=disk)
        return Database(path=path, exists=True, is_locked=True, damage=(str(error),))
    except sqlite3.DatabaseError as error:
        return Database(path=path, exists=True, damage=(str(error),))
    return Database(path=path, exists=True, damage=tuple(one for one in told if one != "ok"))


def judge(database: Database) -> list[Finding]:
    if not database.exists:
        return [good(ABOUT, "there is none yet: the first start makes it")]
    if not database.is_file:
        return [problem(ABOUT, f"{database.path} cannot be read: it is no file", "move it away")]
    if database.disk:
        why, _, do = database.disk.partition(": ")
        return [problem(ABOUT, f"{database.path} cannot be opened: {why}", do)]
    if database.is_locked:
        what = f"{database.path} cannot be read: {database.damage[0]}"
        do = "end the program that holds it (fuser shows which), and mind its rights"
        return [problem(ABOUT, what, do)]
    if database.damage:
        what = f"{database.path} is damaged: {'; '.join(database.damage)}"
        do = "stop the host, move the file away and restore a backup"
        return [problem(ABOUT, what, do)]
    return [good(ABOUT, f"{database.path.name} is whole")]
