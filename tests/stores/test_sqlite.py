"""The store on one SQLite file: durable, batched, careful with the file."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import stat
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import DiskError, StoreRefusedError, StoreUnavailableError
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Kind, Message
from hallporter.stores import migrations
from hallporter.stores.migrations import Migration
from hallporter.stores.sqlite import SqliteStore, open_store
from tests.fakes.clock import START, FakeClock

if TYPE_CHECKING:
    from hallporter.books import Tx

CHAT = ChatId("fake:family")
PATIENCE = 5.0  # seconds
NEWEST = migrations.load("sqlite")[-1].number
NEXT = Migration(
    number=NEWEST + 1, name="more", sql="CREATE TABLE more (x INTEGER NOT NULL) STRICT;"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hallporter.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with asyncio.timeout(PATIENCE * 4), open_store(path, FakeClock()) as opened:
        yield opened


async def fill(path: Path, rows: int = 300) -> None:
    """A database with something in it."""
    async with open_store(path, FakeClock()) as store:
        await store.write(see)
        await store.write(lambda tx: [say(tx, f"text {n} " * 40) for n in range(rows)])


def see(tx: Tx) -> None:
    tx.chats.seen(ChatSeen(chat=CHAT, channel="fake", at=START))


def say(tx: Tx, text: str) -> int:
    seq = tx.chats.raise_head(CHAT)
    tx.messages.add(
        Message(
            id=MessageId(f"m_{seq}"),
            chat=CHAT,
            seq=seq,
            ext_id=str(seq),
            sender="Andy",
            sender_name="Andy",
            text=text,
            at=START,
            kind=Kind.NOTICE,
        )
    )
    return seq


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# --- durability ----------------------------------------------------------------------------------


async def test_the_writer_syncs_fully_in_wal_mode_and_minds_foreign_keys(
    store: SqliteStore,
) -> None:
    def pragma(name: str) -> object:
        return store._connection.execute(f"PRAGMA {name}").fetchone()[0]

    assert pragma("journal_mode") == "wal"
    assert pragma("synchronous") == 2  # FULL
    assert pragma("foreign_keys") == 1


async def test_readers_cannot_write(store: SqliteStore) -> None:
    await store.read(lambda tx: tx.chats.all())

    for connection in store._reading:
        assert connection.execute("PRAGMA query_only").fetchone()[0] == 1


async def test_only_the_owner_can_read_the_file(store: SqliteStore, path: Path) -> None:
    await store.write(see)

    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


async def test_many_closures_share_a_commit(store: SqliteStore) -> None:
    await store.write(see)
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    entered, go_on = threading.Event(), threading.Event()

    def hold_up(_tx: Tx) -> None:
        entered.set()
        assert go_on.wait(PATIENCE)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.write(hold_up))
        await asyncio.to_thread(entered.wait, PATIENCE)
        writes = [tasks.create_task(store.write(lambda tx: say(tx, "hello"))) for _ in range(100)]
        await asyncio.sleep(0)
        go_on.set()

    assert [write.result() for write in writes] == list(range(1, 101))
    assert statements.count("COMMIT") == 2


async def test_a_batch_has_a_limit_so_that_nobody_waits_for_ever(store: SqliteStore) -> None:
    await store.write(see)
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)

    await asyncio.gather(*(store.write(lambda tx: say(tx, "hello")) for _ in range(1000)))

    assert 4 <= statements.count("COMMIT") < 100


async def test_closing_finishes_what_was_handed_in(path: Path) -> None:
    async with open_store(path, FakeClock()) as store:
        await store.write(see)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(50):
                tasks.create_task(store.write(lambda tx: say(tx, "hello")))
            await asyncio.sleep(0)
            await store.close()

    async with open_store(path, FakeClock()) as store:
        assert len(await store.read(lambda tx: tx.messages.page(CHAT, 0, 100))) == 50


async def test_a_closed_store_says_so(path: Path) -> None:
    async with open_store(path, FakeClock()) as store:
        pass

    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.write(see)
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.read(lambda tx: tx.chats.all())


async def test_nothing_but_the_database_is_left_after_closing(path: Path) -> None:
    await fill(path)

    assert [file.name for file in path.parent.iterdir()] == [path.name]


# --- no room -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """A place whose room a test can take away and give back."""

    path: Path
    fill: Callable[[], None]
    free: Callable[[], None]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    place = tmp_path / "shelf"
    place.mkdir()
    if os.geteuid() == 0 and _mount(place):
        ballast = place / "ballast"
        yield Shelf(path=place, fill=lambda: _stuff(ballast), free=ballast.unlink)
        subprocess.run(["umount", "--lazy", place], check=True)
        return
    # An ordinary user has no disk to fill: files that may not grow are the nearest thing.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield Shelf(
        path=place,
        fill=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard)),
        free=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)),
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _mount(place: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _stuff(ballast: Path) -> None:
    """Take all room that is left, to the last page."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(400_000, id="found out at the commit"),
        pytest.param(8_000_000, id="found out in the closure, when the cache overflows"),
    ],
)
async def test_a_full_disk_refuses_the_write_keeps_nothing_of_it_and_works_again_with_room(
    shelf: Shelf, size: int
) -> None:
    async with open_store(shelf.path / "hallporter.db", FakeClock()) as store:
        await store.write(see)
        await store.write(lambda tx: say(tx, "before"))
        ran: list[str] = []

        def too_much(tx: Tx) -> None:
            tx.after_commit(lambda: ran.append("committed"))
            say(tx, "small")
            for _ in range(4):
                say(tx, "x" * (size // 4))

        shelf.fill()
        try:
            for _ in range(3):
                with pytest.raises(DiskError, match="did not take the write: the disk is full"):
                    await store.write(too_much)
            texts = [m.text for m in await store.read(lambda tx: tx.messages.page(CHAT, 0, 10))]
            assert texts == ["before"]
            for _ in range(2):
                with pytest.raises(DiskError, match="the disk is full"):
                    await store.check()
        finally:
            shelf.free()

        assert await store.write(lambda tx: say(tx, "y" * 400_000)) == 2
        assert ran == []
        await store.check()

    async with open_store(shelf.path / "hallporter.db", FakeClock()) as store:
        page = await store.read(lambda tx: tx.messages.page(CHAT, 0, 10))
        assert [len(m.text) for m in page] == [6, 400_000]


# --- damage --------------------------------------------------------------------------------------


def rubbish(path: Path) -> None:
    path.write_bytes(b"this is no database at all\n" * 500)


def scribble(path: Path) -> None:
    with path.open("r+b") as file:
        for page in range(3, 12):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)


def tear(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("damage", [rubbish, scribble, tear])
async def test_a_damaged_database_is_refused_at_the_start_and_kept_byte_for_byte(
    path: Path, damage: Callable[[Path], None]
) -> None:
    await fill(path)
    damage(path)
    before = files(path.parent)

    with pytest.raises(StoreRefusedError, match="left as it is") as caught:
        async with open_store(path, FakeClock()):
            pass

    assert str(path) in caught.value.message
    assert files(path.parent) == before


async def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="cannot be opened"):
        async with open_store(tmp_path, FakeClock()):
            pass


async def test_an_empty_file_is_a_new_database(path: Path) -> None:
    path.touch()

    async with open_store(path, FakeClock()) as store:
        assert await store.read(lambda tx: tx.chats.all()) == []


# --- migrations ----------------------------------------------------------------------------------


def schema(*more: Migration) -> tuple[Migration, ...]:
    return (*migrations.load("sqlite"), *more)


def tables(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in rows}
    finally:
        connection.close()


async def test_a_migration_runs_once_after_a_copy_of_the_file_was_made(path: Path) -> None:
    await fill(path, rows=3)
    for _ in range(2):
        async with open_store(path, FakeClock(), schema(NEXT)) as store:
            assert len(await store.read(lambda tx: tx.messages.page(CHAT, 0, 9))) == 3

    copy = path.with_name(f"hallporter.db.before-{NEXT.number:04}")
    assert "more" in tables(path)
    assert "more" not in tables(copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    async with open_store(copy, FakeClock()) as store:
        assert len(await store.read(lambda tx: tx.messages.page(CHAT, 0, 9))) == 3


async def test_a_new_database_and_an_up_to_date_one_need_no_copy(path: Path) -> None:
    for _ in range(2):
        async with open_store(path, FakeClock(), schema(NEXT)):
            pass

    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    await fill(path, rows=3)
    broken = replace(NEXT, sql=NEXT.sql + "\nINSERT INTO nowhere VALUES (1);")

    with pytest.raises(StoreUnavailableError, match="nowhere"):
        async with open_store(path, FakeClock(), schema(broken)):
            pass

    assert "more" not in tables(path)
    async with open_store(path, FakeClock()) as store:
        assert len(await store.read(lambda tx: tx.messages.page(CHAT, 0, 9))) == 3


async def test_a_copy_of_an_upgrade_that_was_cut_short_is_made_anew(path: Path) -> None:
    await fill(path, rows=3)
    copy = path.with_name(f"hallporter.db.before-{NEXT.number:04}")
    copy.write_bytes(b"half a copy")

    async with open_store(path, FakeClock(), schema(NEXT)):
        pass

    assert "messages" in tables(copy)


async def test_a_newer_schema_is_refused_and_the_file_kept(path: Path) -> None:
    async with open_store(path, FakeClock(), schema(NEXT)):
        pass
    before = files(path.parent)

    with pytest.raises(
        StoreRefusedError, match=f"schema {NEWEST + 1}, this version knows {NEWEST}"
    ):
        async with open_store(path, FakeClock()):
            pass

    assert files(path.parent) == before


async def test_a_step_that_was_applied_in_another_form_is_refused(path: Path) -> None:
    async with open_store(path, FakeClock(), schema(NEXT)):
        pass
    before = files(path.parent)
    edited = replace(NEXT, sql=NEXT.sql.replace("INTEGER", "TEXT"))

    with pytest.raises(StoreRefusedError, match=r"step \d+ \(more\) was applied in another form"):
        async with open_store(path, FakeClock(), schema(edited)):
            pass

    assert files(path.parent) == before


# What was released is in people's databases: a step never changes, a change is a new step.
PINNED = {
    "0001_switchboard": "f59facee7efb80db25f27281fcf32b91c469294c76233c51fd541c5da5255778",
    "0002_sessions": "04905972a0ced3dddd04630b4d6d62965b879187437504f7f23ba66a685ebfbb",
    "0003_notices": "7c2917c81db5973bf3b6477a8509b585aefe2470437ab98f0399369712bc36ea",
    "0004_removals": "37956cc1090614ed136fe9d3f9d2885673c839b4d36674ba4bbdc387340215c5",
    "0005_tasks": "5880f279b703b2be5a50e38da4c25d6bfb22b6e1115c18adcd272f3002a247f5",
    "0006_commands": "efb5e0f1bcfc4b6345787c3bbfbaa228692ceea94644423c8c8d0f4d0d4ee8ab",
    "0007_groups": "ccd3400b2afe80848d2bdf2084fd3267b1ec4edff786472ce81a44ee84bb8c7b",
    "0008_forgettings": "972b643178d8fb2db572279bacf5dfe5443bcbdfdefe2b02e2c2d74c3817cc11",
}


def test_no_migration_has_changed_since_it_was_made() -> None:
    steps = {f"{step.number:04d}_{step.name}": step for step in migrations.load("sqlite")}

    assert {name: step.checksum for name, step in steps.items()} == PINNED


def test_migrations_are_numbered_without_gaps() -> None:
    numbers = [step.number for step in migrations.load("sqlite")]

    assert numbers == list(range(1, len(numbers) + 1))
