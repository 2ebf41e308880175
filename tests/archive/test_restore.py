"""A file that is not whole is never used; one that is comes back, all of it or nothing."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.errors import (
    ConflictError,
    CorruptInputError,
    StoreRefusedError,
    UnavailableError,
)
from hallporter.home import hold, open_home
from hallporter.removal import remove
from hallporter.stores.backup import Source
from hallporter.stores.manifest import (
    Member,
    decode_manifest,
    encode_manifest,
    is_ours,
    stays_inside,
)
from hallporter.stores.restore import (
    Aside,
    occupants,
    place_of,
    refuse_in_use,
    refuse_occupied,
)
from hallporter.stores.sqlite import open_store
from hallporter.stores.unpacking import read_backup
from tests.archive.furnished import (
    LOAD,
    back_up,
    placed,
    quiet,
    tree,
)
from tests.fakes.clock import START, FakeClock

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
    file: Path,
    change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None],
    more: Sequence[tuple[tarfile.TarInfo, bytes]] = (),
) -> None:
    """The same archive with its members changed, as someone with bad intentions would."""
    members = []
    with tarfile.open(file) as tar:
        for info in tar:
            content = tar.extractfile(info) if info.isreg() else None
            members.append((info, content.read() if content else b""))
    members[-1:-1] = more
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


def with_more(file: Path, *more: tuple[tarfile.TarInfo, bytes]) -> None:
    """The same archive with members before its end; what has words is in the manifest as well."""

    def told(info: tarfile.TarInfo, words: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if info.name != "manifest.json":
            return info, words
        old = decode_manifest(words)
        new = [
            Member(name=one.name, size=len(said), sha256=hashlib.sha256(said).hexdigest())
            for one, said in more
            if one.isreg()
        ]
        return info, encode_manifest(replace(old, members=(*old.members, *new)))

    changed(file, told, more)


def entry(name: str, kind: bytes = tarfile.REGTYPE, **pax: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.pax_headers = kind, pax
    return info


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, tarfile.SYMTYPE, linkpath=target), b""


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, tarfile.DIRTYPE), b""


def test_nothing_is_written_along_a_link_that_leads_out_by_way_of_another(
    source: Source, file: Path, into: Path
) -> None:
    outside = into.parent / "outside"
    outside.mkdir()
    back_up(source, file)
    plain = file.read_bytes()
    # From unpacked/groups/main as if down, really up to where `unpacked` lies.
    way = "d/up/../../.."
    for more in (
        [link("groups/main/w", way)],
        [link("groups/main/w", way), link("groups/main/w/outside/evil", "../home")],
        [link("groups/main/w", way), (entry("groups/main/w/outside/evil"), b"evil")],
        [link("groups/main/w", "."), link("groups/main/w/evil", "x")],
    ):
        file.write_bytes(plain)
        with_more(file, folder("groups/main/d"), link("groups/main/d/up", ".."), *more)
        with pytest.raises(CorruptInputError, match=r"a link out of|but not the folder"):
            read_backup(file, into, report=quiet)
        assert not into.exists()
        assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ((entry("groups/main/x", mtime="inf"), b"x"), "is damaged"),
        ((entry("groups/main/x", mtime="nan"), b"x"), "is damaged"),
        ((entry("groups/main/x", mtime="1e300"), b"x"), "is damaged"),
        (
            (entry("groups/main/x", tarfile.SYMTYPE, linkpath="a\0b"), b""),
            "a link out of its folder",
        ),
        ((entry("groups/zoo/x"), b"x"), "'groups/zoo/x', but not the folder that it is in"),
        ((entry("groups/main/CLAUDE.md"), b"x"), "twice"),
        (folder("hallporter.toml"), "twice"),
        (
            (
                entry(
                    "groups/main/x",
                    tarfile.REGTYPE,
                    **{
                        "GNU.sparse.major": "1",
                        "GNU.sparse.minor": "0",
                        "GNU.sparse.name": "groups/main/x",
                        "GNU.sparse.realsize": "10",
                    },
                ),
                b"garbage\n",
            ),
            "is damaged",
        ),
    ],
    ids=["inf", "nan", "huge", "nul", "homeless", "again", "other-kind", "sparse"],
)
def test_a_crafted_member_is_refused_in_one_sentence(
    source: Source, file: Path, into: Path, more: tuple[tarfile.TarInfo, bytes], why: str
) -> None:
    back_up(source, file)
    with_more(file, more)
    with pytest.raises(CorruptInputError, match=why):
        read_backup(file, into, report=quiet)
    assert not into.exists()


def test_what_lies_at_the_top_is_closed_to_others_whatever_the_backup_says(
    source: Source, file: Path, into: Path
) -> None:
    def opened(info: tarfile.TarInfo, words: bytes) -> tuple[tarfile.TarInfo, bytes]:
        info.mode = 0o777
        return info, words

    back_up(source, file)
    changed(file, opened)
    read_backup(file, into, report=quiet)
    for name in (".env", "hallporter.toml", "hallporter.db"):
        assert stat.S_IMODE((into / name).stat().st_mode) == 0o600


def test_nobody_is_logged_in_after_a_restore(source: Source, file: Path, into: Path) -> None:
    with contextlib.closing(sqlite3.connect(source.database)) as store, store:
        store.execute(
            "INSERT INTO sessions VALUES ('s', 'd', NULL, 'here', 'a browser', '', '', NULL)"
        )
        store.execute("INSERT INTO links VALUES ('d', '', NULL)")
    assert back_up(source, file).rows["sessions"] == 1
    read_backup(file, into, report=quiet)
    with contextlib.closing(sqlite3.connect(into / "hallporter.db")) as store:
        for table in ("sessions", "links"):
            assert store.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)


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
    for words in (
        b"",
        b"[]",
        b"{}",
        b'{"format": 1}',
        b'{"format": 1, "members": [{}]}',
        b"[" * 200_000,
        b'{"format": ' + b"1" * 5000 + b"}",
    ):
        with pytest.raises(CorruptInputError):
            decode_manifest(words)


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": "4"},
        {"made_at": 7},
        {"version": None},
        {"rows": {"messages": "many"}},
        {"left_out": 5},
        {"members": [{"name": 1, "size": 1, "sha256": ""}]},
        {"members": 5},
    ],
)
def test_a_manifest_with_values_of_other_kinds_is_refused(fields: dict[str, object]) -> None:
    sound: dict[str, object] = {
        "format": 1,
        "version": "9",
        "made_at": "then",
        "schema": 1,
        "rows": {"messages": 1},
        "members": [{"name": "x", "size": 1, "sha256": ""}],
        "left_out": {},
    }
    decode_manifest(json.dumps(sound).encode())
    with pytest.raises(CorruptInputError):
        decode_manifest(json.dumps(sound | fields).encode())


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
        ("groups/a/x", "x", False),
        ("groups/a/x", "../a/y", False),
        ("groups/x", ".", False),
        ("groups/a/x", "d/" * 200, False),
    ],
)
def test_a_link_stays_in_its_group(name: str, target: str, expected: bool) -> None:
    assert stays_inside(name, {name: target}) is expected
    assert is_ours(name)


def test_a_link_is_judged_by_all_that_it_meets() -> None:
    links = {
        "groups/a/d/up": "..",
        "groups/a/in": "d/up/d/up/y",
        "groups/a/out": "d/up/..",
        "groups/a/by-out": "out/a/y",
        "groups/a/b": "c/c",
        "groups/a/c": "b/b",
    }
    inside = {name.rpartition("/")[2] for name in links if stays_inside(name, links)}
    assert inside == {"up", "in"}


PLACES = [f"groups/a/{place}" for place in ("x", "y", "d/x", "d/y", "d/e/x", "d/e/y")]
WAYS = st.lists(st.sampled_from(["..", "d", "e", "x", "y", "."]), min_size=1, max_size=6)


@given(st.dictionaries(st.sampled_from(PLACES), WAYS.map("/".join)))
def test_no_link_that_is_taken_leads_out_by_the_system_s_own_judgement(
    links: dict[str, str],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        (top / "groups/a/d/e").mkdir(parents=True)
        taken = [link for link in links if stays_inside(link, links)]
        for link in taken:
            (top / link).symlink_to(links[link])
        for link in taken:
            assert (top / link).resolve().is_relative_to(top / "groups/a")


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
    moved = placed(into, source)
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
    moved = placed(into, source, elsewhere)
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


def test_the_database_is_not_put_where_something_else_belongs(
    source: Source, file: Path, into: Path
) -> None:
    home = source.home
    back_up(source, file)
    read_backup(file, into, report=quiet)
    (home.parent / "folder").mkdir()
    for free in ("hallporter.db", "store/x.db", "data/x.db", "../x.db"):
        wanted = place_of(into / free, unpacked=into, home=home)
        assert wanted == Path(os.path.normpath(home / free))
    assert place_of(home.parent / "x.db", unpacked=into, home=home) == home.parent / "x.db"
    for taken in ("groups", ".", ".env", ".env/x.db", "run/admin-token", "../folder"):
        with pytest.raises(ConflictError, match="HALLPORTER_STORE__URL"):
            place_of(into / taken, unpacked=into, home=home)


CUT = """
import os, signal, sys
from pathlib import Path
from hallporter.stores.restore import put_in_place

home, database, left = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
rename = Path.rename


def cut(path, target):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return rename(path, target)


Path.rename = cut
run = home / "run"
journal = run / "restoring.json"
put_in_place(run / "restoring", home, database=database, stamp="now", journal=journal)
"""
ENTRIES = 6  # of the home: as many moves out, and as many in


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("moves", [0, 1, ENTRIES - 1, ENTRIES, ENTRIES + 1, 2 * ENTRIES - 1])
def test_a_restore_that_is_killed_between_two_moves_is_finished_by_the_next_command(
    source: Source, file: Path, moves: int, is_elsewhere: bool
) -> None:
    back_up(source, file)
    home = source.home
    database = source.database
    if is_elsewhere:
        database = home.parent / "disk" / "x.db"
        database.parent.mkdir()
        source.database.rename(database)
    read_backup(file, home / "run" / "restoring", report=quiet)
    expected = tree(home / "run" / "restoring")
    (home / "groups/main/CLAUDE.md").write_text("newer")
    old = database.read_bytes()
    command = [sys.executable, "-c", CUT, str(home), str(database), str(moves)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    aside = home / "before-restore-now"
    beside = database.parent / aside.name / database.name

    [warning] = [one for one in open_home(home).warnings if "cut short" in one]

    assert str(aside) in warning
    assert (aside / "groups/main/CLAUDE.md").read_text() == "newer"
    assert beside.read_bytes() == old
    assert database.read_bytes() == expected.pop("hallporter.db")
    found = tree(home)
    assert {name: found[name] for name in expected} == expected
    assert sorted(path.name for path in (home / "run").iterdir()) == ["admin-token", "door", "lock"]


def test_a_restore_that_cannot_be_finished_says_where_the_old_data_is(
    source: Source, file: Path
) -> None:
    back_up(source, file)
    home = source.home
    read_backup(file, home / "run" / "restoring", report=quiet)
    command = [sys.executable, "-c", CUT, str(home), str(source.database), str(ENTRIES)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    (home / "groups").mkdir()
    (home / "groups" / "new").touch()
    for _ in range(2):
        with pytest.raises(UnavailableError, match="what was there before is in") as told:
            open_home(home)
        assert f"{home}/groups: something is there by now" in told.value.message
    remove(home / "groups")
    open_home(home)
    assert (home / "groups/main/CLAUDE.md").read_text() == "remember the milk"
    (home / "run" / "restoring.json").write_text("[]")
    with pytest.raises(CorruptInputError, match="cannot be read: what was there before"):
        open_home(home)


def test_a_restore_that_fails_between_two_moves_is_undone(source: Source, file: Path) -> None:
    back_up(source, file)
    home = source.home
    into = home / "run" / "restoring"
    read_backup(file, into, report=quiet)
    before = tree(home)
    (home / "before-restore-now").mkdir()
    (home / "before-restore-now" / "policy").touch()  # of someone else: it stays in the way
    with pytest.raises(UnavailableError, match="nothing was restored, and all is where it was"):
        placed(into, source)
    kept = {name: words for name, words in tree(home).items() if "before-" not in name}
    assert kept == {n: w for n, w in before.items() if not n.startswith("run/restoring")}
    assert not into.with_suffix(".json").exists()


def test_a_database_that_cannot_be_brought_near_stays_what_it_is(
    source: Source, file: Path, tmp_path: Path
) -> None:
    back_up(source, file)
    into = source.home / "run" / "restoring"
    read_backup(file, into, report=quiet)
    elsewhere = tmp_path / "disk" / "x.db"
    elsewhere.parent.mkdir()
    elsewhere.write_text("precious")
    (tmp_path / "disk" / "x.db.restoring").mkdir()
    with pytest.raises(UnavailableError, match="nothing was restored"):
        placed(into, source, elsewhere)
    assert elsewhere.read_text() == "precious"
    assert (source.home / "groups/main/CLAUDE.md").exists()


def test_what_a_killed_restore_has_unpacked_goes_with_the_next_command(source: Source) -> None:
    left = source.home / "run" / "restoring" / "groups"
    left.mkdir(parents=True)
    with hold(open_home(source.home), url="", started=START):
        left.mkdir(parents=True)
        open_home(source.home)
        assert left.exists(), "a restore is at work there"
    open_home(source.home)
    assert not left.parent.exists()
