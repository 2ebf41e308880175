"""A backup holds everything, of one moment; a file that is not whole is never used."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import os
import resource
import sqlite3
import stat
import tarfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import (
    ConflictError,
    CorruptInputError,
    InvalidRequestError,
    StoreRefusedError,
    UnavailableError,
)
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Kind, Message
from hallporter.removal import remove
from hallporter.stores.backup import Source, write_backup
from hallporter.stores.manifest import (
    Manifest,
    decode_manifest,
    encode_manifest,
    is_ours,
    stays_inside,
)
from hallporter.stores.restore import (
    Aside,
    occupants,
    put_in_place,
    read_backup,
    refuse_in_use,
    refuse_occupied,
)
from hallporter.stores.sqlite import open_store
from tests.fakes.clock import START, FakeClock
from tests.fakes.ids import counting_id
from tests.test_removal import dig

if TYPE_CHECKING:
    from hallporter.books import Tx

CHAT = ChatId("web:main")
LOAD = 60  # messages before, and as many while the backup is written
LARGE = 9 << 20  # bytes: more than the copy takes in one step


def quiet(_done: int, _total: int) -> None:
    """Nobody watches."""


def say(tx: Tx, text: str = "words " * 200) -> None:
    seq = tx.chats.raise_head(CHAT)
    name = counting_id("m")
    tx.messages.add(
        Message(
            id=MessageId(name),
            chat=CHAT,
            seq=seq,
            ext_id=name,
            sender="Ada",
            sender_name="Ada",
            text=text,
            at=START,
            kind=Kind.REPLY,
        )
    )


async def make_home(home: Path) -> Source:
    files = {
        "hallporter.toml": '[host]\nassistant_name = "Bea"\n',
        ".env": "KEY=secret\n",
        "groups/main/CLAUDE.md": "remember the milk",
        "groups/main/bin/tool": "#!/bin/sh\n",
        "groups/global/CLAUDE.md": "for all",
        "data/sessions/main/.claude/s.jsonl": "{}\n" * 1000,
        "data/media/main/f_1": "sent along",
        "policy/permissions.json": "{}",
        "data/ipc/main/input/1.json": "not kept: it is on its way",
        "run/admin-token": "not kept: each home has its own",
        "logs/hallporter.log": "not kept: what happened stays where it happened",
    }
    for name, words in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    (home / "groups/main/bin/tool").chmod(0o755)
    (home / "groups/main/link").symlink_to("CLAUDE.md")
    (home / ".env").chmod(0o600)
    async with open_store(home / "hallporter.db", FakeClock()) as store:
        await store.write(lambda tx: tx.chats.seen(ChatSeen(chat=CHAT, channel="web", at=START)))
        for _ in range(LOAD):
            await store.write(say)
    return Source(home=home, database=home / "hallporter.db")


def back_up(source: Source, file: Path, report: Callable[[int, int], None] = quiet) -> Manifest:
    return write_backup(file, source, version="9.9.9", made_at="then", report=report)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return asyncio.run(make_home(tmp_path / "home"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup.tar.gz"


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "unpacked"


def tree(home: Path) -> dict[str, bytes]:
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


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
    (group / "folder").symlink_to("bin")
    os.mkfifo(group / "pipe")
    manifest = back_up(source, file)
    assert set(manifest.left_out) == {
        "groups/main/away",
        "groups/main/up",
        "groups/main/neighbour",
        "groups/main/pipe",
    }
    read_backup(file, into, report=quiet)
    assert (into / "groups/main/folder").readlink() == Path("bin")


def test_no_depth_of_folders_holds_a_backup_or_a_restore_up(source: Source, file: Path) -> None:
    dig(source.home / "groups/main/deep", 3000)
    manifest = back_up(source, file)
    [(name, why)] = manifest.left_out.items()
    assert name.startswith("groups/main/deep/d/d/")
    assert why == "more than 100 folders deep"
    into = source.home / "run" / "restoring"
    read_backup(file, into, report=quiet)
    aside = put_in_place(into, source.home, database=source.database, stamp="now").home
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


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused_and_nothing_is_left(
    source: Source, file: Path, into: Path, share: float
) -> None:
    back_up(source, file)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CorruptInputError):
        read_backup(file, into, report=quiet)
    assert not into.exists()


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.9])
def test_a_file_with_a_wrong_byte_is_refused(
    source: Source, file: Path, into: Path, place: float
) -> None:
    back_up(source, file)
    data = bytearray(file.read_bytes())
    data[int(len(data) * place)] ^= 0x55
    file.write_bytes(data)
    with pytest.raises(CorruptInputError):
        read_backup(file, into, report=quiet)
    assert not into.exists()


def test_a_file_that_is_no_backup_is_refused(file: Path, into: Path) -> None:
    file.write_text("hello")
    with pytest.raises(CorruptInputError, match="not a whole backup"):
        read_backup(file, into, report=quiet)
    with pytest.raises(UnavailableError, match="there is no file"):
        read_backup(file.with_name("nothing"), into, report=quiet)


def changed(
    file: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None]
) -> None:
    """The same archive with its members changed, as someone with bad intentions would."""
    members = []
    with tarfile.open(file) as tar:
        for info in tar:
            content = tar.extractfile(info) if info.isreg() else None
            members.append((info, content.read() if content else b""))
    with gzip.open(file, "wb") as raw, tarfile.open(fileobj=raw, mode="w|") as tar:
        for info, words in members:
            if (new := change(info, words)) is not None:
                new[0].size = len(new[1])
                tar.addfile(new[0], io.BytesIO(new[1]))


def renamed(name: str) -> Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(info: tarfile.TarInfo, words: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if info.name == "groups/main/CLAUDE.md":
            info.name = name
        return info, words

    return change


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/etc/cron.d/x",
        "groups/../../outside",
        "groups/../run/admin-token",
        "run/admin-token",
        "groups/main/link",  # a file in the place of another member
        "groups//x",
    ],
)
def test_a_member_that_would_leave_its_place_is_refused(
    source: Source, file: Path, into: Path, name: str
) -> None:
    back_up(source, file)
    changed(file, renamed(name))
    with pytest.raises((CorruptInputError, UnavailableError)):
        read_backup(file, into, report=quiet)
    assert not into.exists()
    assert not (into.parent / "outside").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_that_lead_away_and_devices_are_refused(
    source: Source, file: Path, into: Path, kind: bytes
) -> None:
    back_up(source, file)

    def change(info: tarfile.TarInfo, words: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if info.name == "groups/main/link":
            info.type, info.linkname = kind, "/etc/passwd"
        return info, words

    changed(file, change)
    with pytest.raises(CorruptInputError):
        read_backup(file, into, report=quiet)
    assert not into.exists()


def test_words_that_were_changed_are_noticed_by_their_sum(
    source: Source, file: Path, into: Path
) -> None:
    back_up(source, file)

    def change(info: tarfile.TarInfo, words: bytes) -> tuple[tarfile.TarInfo, bytes]:
        return info, words.replace(b"milk", b"wine")

    changed(file, change)
    with pytest.raises(CorruptInputError, match=r"groups/main/CLAUDE\.md is not as it was"):
        read_backup(file, into, report=quiet)


def test_a_backup_without_its_manifest_is_refused(source: Source, file: Path, into: Path) -> None:
    back_up(source, file)
    changed(file, lambda info, words: None if info.name == "manifest.json" else (info, words))
    with pytest.raises(CorruptInputError, match="without a manifest"):
        read_backup(file, into, report=quiet)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"schema": 99}, "install that one"),
        ({"rows": {"messages": 1}}, "does not hold what the manifest says"),
        ({"format": 2}, "use the version that wrote it"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    source: Source, file: Path, into: Path, fields: dict[str, object], why: str
) -> None:
    manifest = back_up(source, file)
    words = encode_manifest(replace(manifest, **fields))  # type: ignore[arg-type]
    changed(file, lambda info, old: (info, words if info.name == "manifest.json" else old))
    with pytest.raises(CorruptInputError, match=why):
        read_backup(file, into, report=quiet)


def test_a_backup_of_another_build_is_refused_before_anything_is_moved(
    source: Source, file: Path, into: Path
) -> None:
    with contextlib.closing(sqlite3.connect(source.database)) as store, store:
        store.execute("UPDATE schema_version SET sha256 = 'other' WHERE number = 2")
    back_up(source, file)
    with pytest.raises(StoreRefusedError, match="another form") as refused:
        read_backup(file, into, report=quiet)
    assert "written by Hallporter 9.9.9" in refused.value.message
    assert "Use the build that made it" in refused.value.message
    assert not into.exists()


def test_a_manifest_that_cannot_be_read_is_refused() -> None:
    for words in (b"", b"[]", b"{}", b'{"format": 1}', b'{"format": 1, "members": [{}]}'):
        with pytest.raises(CorruptInputError):
            decode_manifest(words)


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("groups/a/x", "y", True),
        ("groups/a/b/x", "../y", True),
        ("groups/a/x", "../b/y", False),
        ("groups/a/x", "/groups/a/y", False),
        ("data/sessions/a/x", "y/../z", True),
        ("hallporter.toml", "x", False),
        ("groups/a/x", "", False),
    ],
)
def test_a_link_stays_in_its_group(name: str, target: str, expected: bool) -> None:
    assert stays_inside(name, target) is expected
    assert is_ours(name)


# --- putting it in place --------------------------------------------------------------------------


def test_an_empty_home_is_one_without_files(source: Source, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / "groups" / "global").mkdir(parents=True)
    (empty / "run").mkdir()
    (empty / "run" / "lock").touch()
    assert occupants(empty) == []
    refuse_occupied(empty, empty / "hallporter.db")
    with pytest.raises(ConflictError, match=r"hallporter\.db"):
        refuse_occupied(source.home, source.database)
    (tmp_path / "elsewhere.db").touch()
    with pytest.raises(ConflictError, match="elsewhere"):
        refuse_occupied(empty, tmp_path / "elsewhere.db")


def test_what_was_there_is_moved_aside_whole(source: Source, file: Path) -> None:
    back_up(source, file)
    into = source.home / "run" / "restoring"
    read_backup(file, into, report=quiet)
    (source.home / "groups/main/CLAUDE.md").write_text("newer")
    moved = put_in_place(into, source.home, database=source.database, stamp="now")
    aside = source.home / "before-restore-now"
    assert moved == Aside(home=aside)
    assert (aside / "groups/main/CLAUDE.md").read_text() == "newer"
    assert (aside / "hallporter.db").exists()
    assert (source.home / "groups/main/CLAUDE.md").read_text() == "remember the milk"
    assert source.database.read_bytes().startswith(b"SQLite format 3")
    assert (source.home / "run/admin-token").exists()
    assert not into.exists()


def killed(database: Path) -> None:
    """A database as a killed host leaves it: what was written last is only in its log."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as alive:
        alive.execute("PRAGMA journal_mode = WAL")
        alive.execute("CREATE TABLE kept (word TEXT)")
        alive.execute("INSERT INTO kept VALUES ('precious')")
        copies = {end: Path(f"{database}{end}").read_bytes() for end in ("", "-wal", "-shm")}
    for end, data in copies.items():
        Path(f"{database}{end}").write_bytes(data)


def test_a_database_elsewhere_is_moved_aside_with_its_log_and_can_be_opened_there(
    source: Source, file: Path, tmp_path: Path
) -> None:
    back_up(source, file)
    elsewhere = tmp_path / "disk" / "store.db"
    elsewhere.parent.mkdir()
    killed(elsewhere)
    into = source.home / "run" / "restoring"
    read_backup(file, into, report=quiet)
    moved = put_in_place(into, source.home, database=elsewhere, stamp="now")
    aside = tmp_path / "disk" / "before-restore-now"
    assert moved.database == aside
    with contextlib.closing(sqlite3.connect(aside / "store.db")) as kept:
        assert kept.execute("SELECT word FROM kept").fetchall() == [("precious",)]
    assert sorted(path.name for path in elsewhere.parent.iterdir()) == [aside.name, "store.db"]
    with contextlib.closing(sqlite3.connect(elsewhere)) as restored:
        assert restored.execute("SELECT COUNT(*) FROM messages").fetchone() == (LOAD,)


async def test_a_database_that_someone_has_open_is_noticed(source: Source, tmp_path: Path) -> None:
    async with open_store(source.database, FakeClock()):
        with pytest.raises(ConflictError, match="is in use: another host"):
            refuse_in_use(source.database)
    refuse_in_use(source.database)
    refuse_in_use(tmp_path / "nothing.db")
    killed(tmp_path / "killed.db")
    refuse_in_use(tmp_path / "killed.db")
    (tmp_path / "no.db").write_text("no database" * 100)
    refuse_in_use(tmp_path / "no.db")
