from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hallporter.doctor import database, machine
from hallporter.doctor.database import Database
from hallporter.doctor.machine import ClockFacts
from hallporter.doctor.storage import folder_size, storage_of
from hallporter.domain.finding import Level
from hallporter.home import Home, open_home
from hallporter.removal import remove
from hallporter.stores.refusals import disk_trouble
from hallporter.stores.sqlite import open_store
from hallporter.switchboard.status import Storage
from tests.fakes.clock import FakeClock

NOW = datetime(2026, 11, 15, 8, 30, tzinfo=UTC)
MIB = 1 << 20
STORAGE = Storage(database=0, groups=0, logs=0, errors=0, free=900 * MIB, total=1000 * MIB)
CLOCK = ClockFacts(
    now=NOW,
    file_time=NOW,
    jumped=timedelta(0),
    zone="Europe/Paris",
    is_zone_set=True,
    local_offset=timedelta(hours=1),
)


# --- disk ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free", "least", "level"),
    [
        (900, 500, Level.OK),
        (400, 500, Level.WARNING),
        (400, None, Level.OK),
        (20, None, Level.PROBLEM),
        (0, None, Level.PROBLEM),
    ],
)
def test_a_disk_that_fills_is_told_in_time(free: int, least: int | None, level: Level) -> None:
    storage = replace(STORAGE, free=free * MIB)
    (found,) = machine.judge_disk(storage, least=None if least is None else least * MIB)
    assert found.level is level
    assert bool(found.do) is (level is not Level.OK)


def test_log_files_beyond_the_settings_are_told() -> None:
    (good,) = machine.judge_logs(replace(STORAGE, logs=60 * MIB), most=60 * MIB)
    (found,) = machine.judge_logs(replace(STORAGE, logs=61 * MIB), most=60 * MIB)
    assert good.level is Level.OK
    assert found.level is Level.WARNING
    assert "61 MiB; the settings allow 60 MiB" in found.what


def test_requests_put_aside_are_told(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    (good,) = machine.judge_errors(home, storage_of(home, home.database))
    (home.errors_dir / "main-1.json").write_text("{")
    (home.errors_dir / "main-1.json.reason.txt").write_text("not JSON")
    (found,) = machine.judge_errors(home, storage_of(home, home.database))
    assert good.level is Level.OK
    assert found.level is Level.WARNING
    assert found.what.startswith("1 file in ")


def test_folders_that_nobody_watches_are_told() -> None:
    (good,) = machine.judge_mail([])
    (found,) = machine.judge_mail([f"g{number}" for number in range(7)])
    assert good.level is Level.OK
    assert found.level is Level.WARNING
    assert "of g0, g1, g2, g3, g4 and 2 more are looked for once a minute" in found.what
    assert "fs.inotify.max_user_watches" in found.do


def test_what_a_home_takes_is_counted_without_following_links(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"x" * 100_000)
    (home.groups_dir / "link").symlink_to(elsewhere)
    (home.groups_dir / "note").write_bytes(b"x" * 1000)
    home.database.write_bytes(b"x" * 500)
    home.database.with_name("hallporter.db-wal").write_bytes(b"x" * 50)
    home.log_file.write_bytes(b"x" * 7)
    storage = storage_of(home, home.database)
    assert (storage.database, storage.logs) == (550, 7)
    assert 1000 <= storage.groups < 2000
    assert 0 < storage.free <= storage.total


def test_a_folder_of_any_depth_is_measured(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "file").write_bytes(b"x" * 100)
    here = os.open(tmp_path / "top", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        assert folder_size(tmp_path) == 100
    finally:
        remove(tmp_path / "top")
    assert folder_size(tmp_path / "nowhere") == 0


# --- clock --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "level", "told"),
    [
        (CLOCK, Level.OK, "zone Europe/Paris"),
        (
            replace(
                CLOCK,
                now=datetime(1970, 1, 1, tzinfo=UTC),
                file_time=datetime(1970, 1, 1, tzinfo=UTC),
            ),
            Level.PROBLEM,
            "the clock says 1970-01-01",
        ),
        (replace(CLOCK, file_time=NOW + timedelta(seconds=90)), Level.WARNING, "+90 s"),
        (replace(CLOCK, jumped=timedelta(minutes=-5)), Level.WARNING, "set by -300 s"),
        (replace(CLOCK, zone="UTC", is_zone_set=False), Level.WARNING, "agents are told UTC"),
    ],
)
def test_a_clock_that_cannot_be_trusted_is_told(facts: ClockFacts, level: Level, told: str) -> None:
    (found,) = machine.judge_clock(facts)
    assert found.level is level
    assert told in found.what
    assert bool(found.do) is (level is not Level.OK)


def test_the_clock_of_this_machine_is_read(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    now = datetime.now(UTC)
    began = machine.begin(now - timedelta(hours=1))
    facts = machine.look_at_clock(home, now=now, began=began, zone="UTC", is_zone_set=True)
    assert facts.file_time is not None
    assert abs(facts.file_time - now) < timedelta(seconds=30)
    assert timedelta(minutes=59) < facts.jumped < timedelta(minutes=61)
    assert list(home.run_dir.glob("clock-*")) == []


def test_a_disk_that_takes_no_file_says_nothing_about_the_clock(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    facts = machine.look_at_clock(
        Home(path=tmp_path / "nowhere"),
        now=now,
        began=machine.begin(now),
        zone="UTC",
        is_zone_set=True,
    )
    (found,) = machine.judge_clock(facts)
    assert found.level is Level.OK


# --- port ---------------------------------------------------------------------------------------


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        yield door.getsockname()[1]


def test_a_port_of_another_program_is_told(taken: int) -> None:
    (found,) = machine.judge_port(machine.look_at_port("127.0.0.1", taken, ""))
    assert found.level is Level.PROBLEM
    assert "taken by another program" in found.what
    assert "--port" in found.do


def test_our_own_port_is_fine(taken: int) -> None:
    url = f"http://127.0.0.1:{taken}"
    (found,) = machine.judge_port(machine.look_at_port("127.0.0.1", taken, url))
    assert (found.level, found.what) == (Level.OK, f"this host listens at {url}")


def test_a_free_port_is_fine() -> None:
    (found,) = machine.judge_port(machine.look_at_port("127.0.0.1", 0, ""))
    assert found.level is Level.OK


def test_an_address_that_is_not_ours_is_told() -> None:
    (found,) = machine.judge_port(machine.look_at_port("192.0.2.1", 3100, ""))
    assert found.level is Level.PROBLEM
    assert "cannot be used" in found.what


# --- database -----------------------------------------------------------------------------------


async def test_a_whole_database_is_fine_also_while_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "hallporter.db"
    (none_yet,) = database.judge(database.look(path))
    async with open_store(path, FakeClock()):
        (found,) = database.judge(database.look(path))
    assert (none_yet.level, found.level) == (Level.OK, Level.OK)


async def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "hallporter.db"
    async with open_store(path, FakeClock()):
        pass
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    path.write_bytes(content)
    (found,) = database.judge(database.look(path))
    assert found.level is Level.PROBLEM
    assert "is damaged" in found.what
    assert "restore a backup" in found.do


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "hallporter.db"
    path.write_bytes(b"not a database" * 1000)
    (found,) = database.judge(database.look(path))
    assert found.level is Level.PROBLEM


def test_a_database_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "hallporter.db").mkdir()
    (found,) = database.judge(database.look(tmp_path / "hallporter.db"))
    assert found.level is Level.PROBLEM
    assert "cannot be read: it is no file" in found.what


@pytest.mark.parametrize(
    ("code", "why", "do"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full", "make room"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, "the disk is full or does not work", "make room"),
        (sqlite3.SQLITE_IOERR_READ, "the disk does not work", "dmesg"),
    ],
)
def test_a_disk_that_keeps_the_database_shut_is_told_as_the_cause(
    tmp_path: Path, code: int, why: str, do: str
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    facts = Database(path=tmp_path / "hallporter.db", exists=True, disk=disk_trouble(error))
    (found,) = database.judge(facts)
    assert found.is_wrong
    assert found.what.endswith(f"cannot be opened: {why}")
    assert do in found.do


def test_a_lock_is_not_the_disks_fault() -> None:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    assert disk_trouble(error) == ""
