"""The other system's database is read as it is at one moment, and nothing is left beside it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from hallporter.domain.errors import InvalidRequestError
from hallporter.imports.snapshot import snapshot
from tests.imports.home import picture


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "messages.db"


def filled(database: Path, *, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(database)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE t (n)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    return connection


def read(database: Path) -> int:
    before = picture(database.parent)
    with snapshot(database) as copy:
        count: int = copy.execute("SELECT COUNT(*) FROM t").fetchone()[0]
        with pytest.raises(sqlite3.OperationalError):
            copy.execute("INSERT INTO t VALUES (9)")
    assert picture(database.parent) == before
    return count


def test_a_plain_file(database: Path) -> None:
    filled(database, mode="DELETE").close()
    assert read(database) == 1


def test_a_file_whose_newest_part_lies_beside_it(database: Path) -> None:
    with contextlib.closing(filled(database, mode="WAL")) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        assert read(database) == 2


def test_a_file_that_was_left_in_that_mode(database: Path) -> None:
    filled(database, mode="WAL").close()
    assert sorted(path.name for path in database.parent.iterdir()) == ["messages.db"]
    assert read(database) == 1


def test_what_a_crash_left_half_done_is_undone_in_the_copy_alone(
    tmp_path: Path, database: Path
) -> None:
    with contextlib.closing(filled(tmp_path / "other.db", mode="DELETE")) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("PRAGMA cache_spill = 1")
        writer.execute("BEGIN")
        writer.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,) for _ in range(500)])
        for part in ("", "-journal"):
            raw = (tmp_path / f"other.db{part}").read_bytes()
            database.with_name(database.name + part).write_bytes(raw)
        writer.rollback()
    assert read(database) == 1


def test_a_program_that_writes_meanwhile_is_not_held_up(database: Path) -> None:
    with contextlib.closing(filled(database, mode="DELETE")) as writer, snapshot(database) as copy:
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        assert copy.execute("SELECT COUNT(*) FROM t").fetchone()[0] == 1


@pytest.mark.parametrize("content", [b"words " * 100, b"SQLite format 3\x00" + b"\x07" * 4000])
def test_what_is_no_database_is_refused(database: Path, content: bytes) -> None:
    database.write_bytes(content)
    with pytest.raises(InvalidRequestError, match="cannot be read"), snapshot(database):
        pass
