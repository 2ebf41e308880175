"""A backup holds everything, of one moment, whatever is done to the home meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hallporter.domain.errors import (
    ConflictError,
    InvalidRequestError,
    UnavailableError,
)
from hallporter.removal import remove
from hallporter.stores.backup import Source, write_backup
from hallporter.stores.restore import (
    occupants,
)
from hallporter.stores.sqlite import open_store
from hallporter.stores.unpacking import read_backup
from tests.archive.furnished import (
    CHAT,
    LARGE,
    LOAD,
    back_up,
    make_home,
    placed,
    quiet,
    say,
    tree,
)
from tests.fakes.clock import FakeClock
from tests.test_removal import dig


def test_everything_comes_back_as_it_was(source: Source, file: Path, into: Path) -> None:
    manifest = back_up(source, file)
    assert read_backup(file, into, report=quiet) == manifest
    before, after = tree(source.home), tree(into)
    left = {name for name in before if name.split("/")[0] in ("run", "logs")}
    left |= {"data/ipc/main/input/1.json", "hallporter.db"}
    assert {n: w for n, w in before.items() if n not in left} == {
        n: w for n, w in after.items() if n != "hallporter.db"
    }
    assert manifest.rows["messages"] == LOAD
    assert (into / "groups/main/link").readlink() == Path("CLAUDE.md")
    assert os.access(into / "groups/main/bin/tool", os.X_OK)
    assert stat.S_IMODE((into / ".env").stat().st_mode) == 0o600
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_is_about_to_be_forgotten_is_not_kept_in_a_backup(source: Source, file: Path) -> None:
    leaving = source.home / "groups" / ".forgotten-0123" / "memory.md"
    leaving.parent.mkdir()
    leaving.write_text("a secret")
    assert not [one.name for one in back_up(source, file).members if "forgotten" in one.name]


def test_a_database_in_one_of_the_trees_is_taken_once_and_without_its_log(
    source: Source, file: Path, into: Path
) -> None:
    database = source.home / "store" / "x.db"
    database.parent.mkdir()
    source.database.rename(database)
    Path(f"{database}-wal").touch()
    back_up(replace(source, database=database), file)
    read_backup(file, into, report=quiet)
    assert list((into / "store").iterdir()) == []
    assert (into / "hallporter.db").exists()


def test_names_as_long_as_they_may_be_come_back_from_any_depth(
    source: Source, file: Path, into: Path
) -> None:
    top = source.home / "groups/main" / ("n" * 250)
    dig(top, 20, "n" * 250)
    assert back_up(source, file).left_out == {}
    read_backup(file, into, report=quiet)
    assert depth_of(into / "groups/main", "n" * 250) == 21
    assert occupants(into.parent) == ["backup.tar.gz", "home", "unpacked"]
    for folder in (top, into / "groups"):
        remove(folder)  # pytest could not


def depth_of(folder: Path, name: str) -> int:
    handle, depth = os.open(folder, os.O_DIRECTORY), 0
    while name in os.listdir(handle):  # noqa: PTH208  a handle, not a path
        inner = os.open(name, os.O_DIRECTORY, dir_fd=handle)
        os.close(handle)
        handle, depth = inner, depth + 1
    os.close(handle)
    return depth


def test_a_link_that_becomes_a_folder_meanwhile_is_not_taken_twice(
    source: Source, file: Path, into: Path
) -> None:
    group = source.home / "groups/main"
    (group / "a").symlink_to("bin")
    (group / "b").write_bytes(b"x" * LARGE)  # read after `a` was seen, before folders are entered
    begun = 2 * source.database.stat().st_size + LARGE // 2

    def change(done: int, _total: int) -> None:
        if done > begun and (group / "a").is_symlink():
            (group / "a").unlink()
            (group / "a").mkdir()
            (group / "a" / "inner").touch()

    back_up(source, file, change)
    assert (group / "a" / "inner").exists()
    read_backup(file, into, report=quiet)
    assert (into / "groups/main/a").readlink() == Path("bin")


def test_a_file_that_grows_while_it_is_read_is_taken_up_to_its_first_end(
    source: Source, file: Path, into: Path
) -> None:
    growing = source.home / "groups/main/growing"
    growing.write_bytes(b"x" * LARGE)

    def grow(_done: int, _total: int) -> None:
        with growing.open("ab") as writing:
            writing.write(b"y" * (1 << 10))

    manifest = back_up(source, file, grow)
    why = manifest.left_out["groups/main/growing"]
    assert why == "in part: it was changed while it was read"
    read_backup(file, into, report=quiet)
    [member] = [one for one in manifest.members if one.name == "groups/main/growing"]
    assert LARGE <= member.size < growing.stat().st_size


def test_a_file_that_shrinks_while_it_is_read_does_not_spoil_the_backup(
    source: Source, file: Path, into: Path
) -> None:
    shrinking = source.home / "groups/main/shrinking"
    shrinking.write_bytes(b"x" * LARGE)
    begun = 2 * source.database.stat().st_size + LARGE // 2

    def shrink(done: int, _total: int) -> None:
        if done > begun:
            shrinking.write_bytes(b"")

    manifest = back_up(source, file, shrink)
    assert list(manifest.left_out) == ["groups/main/shrinking"]
    read_backup(file, into, report=quiet)
    assert (into / "groups/main/shrinking").stat().st_size == LARGE


def test_holes_cost_no_room_and_great_ones_are_left_out(
    source: Source, file: Path, into: Path
) -> None:
    group = source.home / "groups/main"
    with (group / "hole").open("wb") as small, (group / "abyss").open("wb") as great:
        small.truncate(64 << 20)
        great.truncate(1 << 40)
    manifest = back_up(source, file)
    assert manifest.left_out == {"groups/main/abyss": "more than 1 GiB of it were never written"}
    read_backup(file, into, report=quiet)
    restored = (into / "groups/main/hole").stat()
    assert restored.st_size == 64 << 20
    assert restored.st_blocks * 512 < 1 << 20


def test_two_backups_to_one_file_do_not_meet(source: Source, file: Path, into: Path) -> None:
    def another(_done: int, _total: int) -> None:
        if file.exists():  # it is whole
            return
        with pytest.raises(ConflictError, match="another backup is being written"):
            back_up(source, file)

    back_up(source, file, another)
    read_backup(file, into, report=quiet)
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "backup.tar.gz",
        "home",
        "unpacked",
    ]


def test_what_a_killed_backup_has_left_is_no_hindrance(source: Source, file: Path) -> None:
    file.with_name(f"{file.name}.part").write_bytes(b"half of it" * 10_000)
    file.with_name(f"{file.name}.part.db").write_bytes(b"half of it")
    back_up(source, file)
    read_backup(file, source.home.parent / "unpacked", report=quiet)
    assert not list(file.parent.glob("*.part*"))


def test_nothing_lies_beside_a_finished_backup(source: Source, file: Path) -> None:
    back_up(source, file)
    assert sorted(path.name for path in file.parent.iterdir()) == ["backup.tar.gz", "home"]


def test_progress_never_goes_back_and_ends_at_the_end(source: Source, file: Path) -> None:
    told: list[tuple[int, int]] = []
    back_up(source, file, lambda done, total: told.append((done, total)))
    shares = [done for done, _ in told]
    assert shares == sorted(shares)
    assert told[-1][0] == told[-1][1]


async def test_a_backup_beside_a_writer_is_of_one_moment(source: Source, file: Path) -> None:
    """Each write raises the head and adds a row: a copy of two moments would tell them apart."""
    begun = threading.Event()
    enough = threading.Event()

    def slow(_done: int, _total: int) -> None:
        begun.set()
        assert enough.wait(20)

    async with open_store(source.database, FakeClock()) as store:
        await store.write(lambda tx: say(tx, "x" * LARGE))
        working = asyncio.get_running_loop().run_in_executor(None, back_up, source, file, slow)
        await asyncio.to_thread(begun.wait, 20)
        for _ in range(LOAD):
            await store.write(say)
        enough.set()
        manifest = await working
        head = await store.read(lambda tx: tx.chats.get(CHAT))
    assert head is not None
    assert head.head == 2 * LOAD + 1, "the writer was not held up"
    read_backup(file, source.home.parent / "unpacked", report=quiet)
    with sqlite3.connect(source.home.parent / "unpacked" / "hallporter.db") as copy:
        [(told, count)] = copy.execute(
            "SELECT head, (SELECT COUNT(*) FROM messages) FROM chats"
        ).fetchall()
    assert told == count == manifest.rows["messages"] == LOAD + 1


def test_what_is_no_file_or_leads_away_is_left_out_and_named(
    source: Source, file: Path, into: Path
) -> None:
    group = source.home / "groups/main"
    (group / "away").symlink_to("/etc/hostname")
    (group / "up").symlink_to("../../hallporter.toml")
    (group / "neighbour").symlink_to("../global/CLAUDE.md")
    (group / "bin" / "back").symlink_to("..")
    (group / "round").symlink_to("bin/back/../global")  # reads as if it stayed
    (group / "circle").symlink_to("circle")
    (group / "folder").symlink_to("bin")
    os.mkfifo(group / "pipe")
    manifest = back_up(source, file)
    assert set(manifest.left_out) == {
        "groups/main/away",
        "groups/main/up",
        "groups/main/neighbour",
        "groups/main/pipe",
        "groups/main/round",
        "groups/main/circle",
    }
    read_backup(file, into, report=quiet)
    assert (into / "groups/main/bin/back").readlink() == Path("..")
    assert (into / "groups/main/folder").readlink() == Path("bin")


def test_no_depth_of_folders_holds_a_backup_or_a_restore_up(source: Source, file: Path) -> None:
    dig(source.home / "groups/main/deep", 3000)
    manifest = back_up(source, file)
    [(name, why)] = manifest.left_out.items()
    assert name.startswith("groups/main/deep/d/d/")
    assert why == "more than 100 folders deep"
    into = source.home / "run" / "restoring"
    read_backup(file, into, report=quiet)
    aside = placed(into, source).home
    assert aside is not None
    assert (source.home / "groups/main/CLAUDE.md").read_text() == "remember the milk"
    remove(aside / "groups")  # pytest could not


def test_a_tree_that_the_operator_has_put_elsewhere_is_taken(
    source: Source, file: Path, into: Path
) -> None:
    elsewhere = source.home.parent / "large-disk"
    (source.home / "groups").rename(elsewhere)
    (source.home / "groups").symlink_to(elsewhere)
    back_up(source, file)
    read_backup(file, into, report=quiet)
    assert (into / "groups/main/CLAUDE.md").read_text() == "remember the milk"


def test_a_damaged_database_is_refused_and_leaves_no_file(source: Source, file: Path) -> None:
    source.database.write_bytes(b"not a database" * 1000)
    with pytest.raises(UnavailableError, match="could not be read"):
        back_up(source, file)
    assert [path.name for path in file.parent.iterdir()] == ["home"]


def test_an_old_backup_stays_until_the_new_one_is_whole(source: Source, file: Path) -> None:
    back_up(source, file)
    old = file.read_bytes()
    source.database.write_bytes(b"not a database" * 1000)
    with pytest.raises(UnavailableError):
        back_up(source, file)
    assert file.read_bytes() == old


def test_an_old_backup_is_replaced_also_one_that_is_not_whole(source: Source, file: Path) -> None:
    file.touch()  # as a script does that wants a name of its own
    back_up(source, file)
    file.write_bytes(file.read_bytes()[:5000])
    back_up(source, file)
    read_backup(file, source.home.parent / "unpacked", report=quiet)


def other_archive(file: Path) -> bytes:
    with tarfile.open(file, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("photos/"))
    return file.read_bytes()


@pytest.mark.parametrize("content", [b"my diary", b"\x1f\x8b\x08 not quite", None])
def test_a_file_that_is_no_backup_is_not_overwritten_unless_forced(
    source: Source, file: Path, content: bytes | None
) -> None:
    precious = other_archive(file) if content is None else content
    file.write_bytes(precious)
    with pytest.raises(
        InvalidRequestError, match="is no backup: name another file, or say --force"
    ):
        back_up(source, file)
    assert file.read_bytes() == precious
    write_backup(file, source, version="9", made_at="then", report=quiet, is_forced=True)
    read_backup(file, source.home.parent / "unpacked", report=quiet)


def test_a_device_is_never_replaced(source: Source, file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(InvalidRequestError, match="a device or a pipe"):
        write_backup(file, source, version="9", made_at="then", report=quiet, is_forced=True)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere/b.tar.gz", "make it first"),
        (".", "is a folder"),
        ("home/groups/main/b.tar.gz", "part of itself"),
    ],
)
def test_a_bad_place_is_refused_with_what_to_do(source: Source, name: str, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        back_up(source, source.home.parent / name)


def test_a_home_without_a_database_is_refused(source: Source, file: Path) -> None:
    with pytest.raises(InvalidRequestError, match="nothing to back up"):
        back_up(replace(source, database=source.home / "gone.db"), file)


def test_a_disk_without_room_leaves_no_file(source: Source, file: Path) -> None:
    (source.home / "groups/main/bulk").write_bytes(os.urandom(1 << 20))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, before[1]))
    try:
        with pytest.raises(UnavailableError, match="could not be written"):
            back_up(source, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in file.parent.iterdir()] == ["home"]


def test_a_full_disk_is_not_laid_on_the_database(source: Source, file: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1]))
    try:
        with pytest.raises(UnavailableError, match=rf"the backup {file} could not be written"):
            back_up(source, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in file.parent.iterdir()] == ["home"]


AS_ANOTHER = """
    import json, os, sys
    from pathlib import Path
    from hallporter.stores.backup import Source, write_backup
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(1000)
        os.setuid(1000)
    file, home = Path(sys.argv[1]), Path(sys.argv[2])
    source = Source(home=home, database=home / "hallporter.db")
    told = write_backup(file, source, version="9", made_at="then", report=lambda *_: None)
    print(json.dumps(told.left_out))
"""


def test_what_may_not_be_looked_into_is_left_out_and_named() -> None:
    """Root may look everywhere, so it becomes someone else."""
    with tempfile.TemporaryDirectory() as name:
        ground = Path(name)
        source = asyncio.run(make_home(ground / "home"))
        for path in (ground, *ground.rglob("*")):
            os.chown(path, 1000 if os.geteuid() == 0 else -1, -1, follow_symlinks=False)
        (source.home / "groups/main/bin").chmod(0o000)
        (source.home / "groups/global").chmod(0o600)  # its names can be read, and nothing else
        (source.home / "policy").chmod(0o000)
        command = [sys.executable, "-c", textwrap.dedent(AS_ANOTHER)]
        ran = subprocess.run(
            [*command, str(ground / "b.tar.gz"), str(source.home)],
            check=True,
            stdout=subprocess.PIPE,
            timeout=30,
        )
        assert json.loads(ran.stdout) == dict.fromkeys(
            ("groups/main/bin", "groups/global/CLAUDE.md", "policy"), "Permission denied"
        )
        read_backup(ground / "b.tar.gz", ground / "unpacked", report=quiet)
