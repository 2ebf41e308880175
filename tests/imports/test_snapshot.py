"""The other system's database is read as it is at one moment, and nothing is left beside it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer

import pytest

from hallporter.domain.errors import InvalidRequestError
from hallporter.imports.snapshot import snapshot
from hallporter.removal import opened
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


@contextlib.contextmanager
def copied(database: Path, stopping: Event | None = None) -> Iterator[sqlite3.Connection]:
    """Its copy, as an import has it; the database is `store/messages.db` of a folder."""
    project = database.parent.parent
    (project / "aside").mkdir()
    file = database.relative_to(project)
    with (
        opened(project) as top,
        snapshot(top, file, project / "aside", stopping or Event()) as copy,
    ):
        yield copy


def read(database: Path) -> int:
    before = picture(database.parent)
    with copied(database) as copy:
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
    with contextlib.closing(filled(database, mode="DELETE")) as writer, copied(database) as copy:
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        assert copy.execute("SELECT COUNT(*) FROM t").fetchone()[0] == 1


@pytest.mark.parametrize("content", [b"words " * 100, b"SQLite format 3\x00" + b"\x07" * 4000])
def test_what_is_no_database_is_refused(database: Path, content: bytes) -> None:
    database.write_bytes(content)
    with pytest.raises(InvalidRequestError, match="cannot be read"), copied(database):
        pass


def test_a_link_or_a_pipe_in_its_place_is_refused(tmp_path: Path, database: Path) -> None:
    filled(tmp_path / "other.db", mode="DELETE").close()
    database.symlink_to(tmp_path / "other.db")
    with pytest.raises(InvalidRequestError, match="it is a link"), copied(database):
        pass
    (tmp_path / "aside").rmdir()
    database.unlink()
    os.mkfifo(database)
    with pytest.raises(InvalidRequestError, match="it is no regular file"), copied(database):
        pass


def test_a_journal_that_names_another_file_removes_nothing(tmp_path: Path, database: Path) -> None:
    filled(database, mode="DELETE").close()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    name = str(precious).encode()
    # As a transaction over several databases leaves it: a header, and the file that joins them.
    magic = bytes.fromhex("d9d505f920a163d7")
    numbers = [0, 7, 2, 512, 4096]
    header = magic + b"".join(one.to_bytes(4, "big") for one in numbers)
    mark = (1 << 30) // 4096 + 1
    tail = mark.to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    sum_ = sum(name).to_bytes(4, "big")
    journal = database.with_name(f"{database.name}-journal")
    journal.write_bytes(header.ljust(512, b"\0") + tail + sum_ + magic)
    with pytest.raises(InvalidRequestError, match="shared with another"), copied(database):
        pass
    assert precious.read_text() == "mine"


def test_a_query_ends_when_the_import_does(database: Path) -> None:
    filled(database, mode="DELETE").close()
    stopping = Event()
    endless = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT MAX(n) FROM n"
    with copied(database, stopping) as copy:
        timer = Timer(0.1, stopping.set)
        timer.start()
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            copy.execute(endless)
        timer.join()


def test_a_file_that_another_program_writes_to_is_waited_for(database: Path) -> None:
    filled(database, mode="DELETE").close()
    stopping = Event()
    timer = Timer(0.1, stopping.set)
    timer.start()
    with (
        _writer(database),
        pytest.raises(InvalidRequestError, match="another program holds it"),
        copied(database, stopping),
    ):
        pass
    timer.join()
    (database.parent.parent / "aside").rmdir()
    assert read(database) == 1


@contextlib.contextmanager
def _writer(database: Path) -> Iterator[None]:
    """Another process: locks hold between those."""
    words = (
        "import sqlite3, sys\n"
        "held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "held.execute('BEGIN EXCLUSIVE')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", words, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()
