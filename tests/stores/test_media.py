"""Copies of agents' files: taken without following anyone, kept out of reach."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hallporter.domain.enclosure import MAX_ENCLOSURE, Enclosure, FilePlace
from hallporter.domain.errors import RefusedError
from hallporter.domain.ids import EnclosureId, Folder
from hallporter.stores.media import Media

FAMILY, WORK = Folder("family"), Folder("work")
ID = EnclosureId("f_1")
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("groups/family/out", "groups/work", "groups/global"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "groups/work/secret").write_text("not yours")
    (tmp_path / "outside").write_text("nobody's")
    return tmp_path


async def keep(home: Path, *parts: str, is_shared: bool = False) -> int:
    place = FilePlace(parts=parts, is_shared=is_shared)
    return await Media(home).keep(place, FAMILY, FAMILY, ID)


def kept(home: Path) -> list[Path]:
    return sorted(path for path in home.glob("data/media/**/*") if not path.is_dir())


def enclosure(id: EnclosureId = ID) -> Enclosure:
    return Enclosure(id=id, folder=FAMILY, name="a", size=1, type="text/plain")


async def test_a_copy_is_whole_and_closed_to_others(home: Path) -> None:
    content = os.urandom(3_000_000)
    (home / "groups/family/out/plan.pdf").write_bytes(content)
    assert await keep(home, "out", "plan.pdf") == len(content)
    (home / "groups/family/out/plan.pdf").write_text("changed")
    path = await Media(home).find(enclosure())
    assert path is not None
    assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert kept(home) == [path]


async def test_an_empty_file_and_a_shared_one_can_be_kept(home: Path) -> None:
    (home / "groups/global/empty").touch()
    assert await keep(home, "empty", is_shared=True) == 0


async def test_a_group_whose_folder_the_operator_has_put_elsewhere_is_served(home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / "elsewhere/a").write_text("here")
    (home / "groups/family/out").rmdir()
    (home / "groups/family").rmdir()
    (home / "groups/family").symlink_to(home / "elsewhere")
    assert await keep(home, "a") == 4


def link(home: Path) -> None:
    (home / "groups/family/a").symlink_to(home / "groups/work/secret")


def link_inside(home: Path) -> None:
    (home / "groups/family/b").write_text("b")
    (home / "groups/family/a").symlink_to("b")


def folder(home: Path) -> None:
    (home / "groups/family/a").mkdir()


def pipe(home: Path) -> None:
    os.mkfifo(home / "groups/family/a")


def door(home: Path) -> None:
    here = Path.cwd()
    os.chdir(home / "groups/family")  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("a")
    finally:
        os.chdir(here)


def hard_link(home: Path) -> None:
    (home / "groups/family/a").hardlink_to(home / "groups/work/secret")


def giant(home: Path) -> None:
    with (home / "groups/family/a").open("wb") as file:
        file.truncate(MAX_ENCLOSURE + 1)


def nothing(_home: Path) -> None:
    """There is no such file."""


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (link, "by a link"),
        (link_inside, "by a link"),
        (folder, "is no file"),
        (pipe, "is no file"),
        (door, "cannot be read"),
        (hard_link, "hard links"),
        (giant, "at most 16 MiB"),
        (nothing, "there is no file 'a'"),
    ],
)
async def test_what_is_no_plain_file_is_refused_and_leaves_nothing(
    home: Path, make: Callable[[Path], None], why: str
) -> None:
    make(home)
    with pytest.raises(RefusedError) as refusal:
        await keep(home, "a")
    assert why in refusal.value.message
    assert str(home) not in refusal.value.message
    assert kept(home) == []


@pytest.mark.parametrize("target", ["{home}/groups/work", "../work", "{home}"])
async def test_no_folder_on_the_way_is_a_link(home: Path, target: str) -> None:
    (home / "groups/family/away").symlink_to(target.format(home=home))
    for name in ("secret", "outside"):
        with pytest.raises(RefusedError, match="by a link"):
            await keep(home, "away", name)
    (home / "groups/family/plain").touch()
    with pytest.raises(RefusedError, match="not through folders"):
        await keep(home, "plain", "secret")
    assert kept(home) == []


async def test_the_largest_file_is_taken(home: Path) -> None:
    with (home / "groups/family/a").open("wb") as file:
        file.truncate(MAX_ENCLOSURE)
    assert await keep(home, "a") == MAX_ENCLOSURE


async def test_a_host_that_cannot_write_says_so(home: Path) -> None:
    (home / "groups/family/a").write_text("a")
    (home / "data").mkdir()
    (home / "data/media").write_text("in the way")
    with pytest.raises(RefusedError, match="cannot keep a copy"):
        await keep(home, "a")


async def test_a_discarded_copy_is_gone_and_may_be_discarded_again(home: Path) -> None:
    (home / "groups/family/a").write_text("a")
    await keep(home, "a")
    media = Media(home)
    await media.discard(enclosure())
    await media.discard(enclosure())
    assert await media.find(enclosure()) is None
    assert kept(home) == []


async def test_the_sweep_takes_the_old_and_the_lost(home: Path) -> None:
    place = home / "data/media/family"
    place.mkdir(parents=True)
    ages = {"f_young": 0, "f_old": 40, "f_lost": 1, "f_in_hand": 0, "f_9.part": 1}
    for name, days in ages.items():
        (place / name).touch()
        at = (NOW - timedelta(days=days)).timestamp()
        os.utime(place / name, (at, at))
    known = frozenset({EnclosureId("f_young"), EnclosureId("f_old")})
    media = Media(home)
    lost_before = NOW - timedelta(hours=1)
    assert await media.sweep(known, before=None, lost_before=lost_before) == 2
    assert [path.name for path in kept(home)] == ["f_in_hand", "f_old", "f_young"]
    before = NOW - timedelta(days=30)
    assert await media.sweep(known, before=before, lost_before=lost_before) == 1
    assert [path.name for path in kept(home)] == ["f_in_hand", "f_young"]


async def test_a_home_without_files_has_nothing_to_sweep(tmp_path: Path) -> None:
    assert await Media(tmp_path).sweep(frozenset(), before=NOW, lost_before=NOW) == 0
