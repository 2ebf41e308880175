"""Folders side by side: what is there stays, nothing leads out, and half a file is none."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Event

import pytest

from hallporter.domain.import_report import Outcome
from hallporter.imports.tree import copied, count_files
from hallporter.removal import opened

CARRIED, THERE, SKIPPED = Outcome.CARRIED, Outcome.THERE, Outcome.SKIPPED


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "g").mkdir()
    return tmp_path / "g"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "to"


def told(source: Path, target: Path, *, is_dry_run: bool = False) -> list[tuple[str, str, str]]:
    with opened(source.parent) as top:
        pieces = list(copied(top, (source.name,), target, is_dry_run=is_dry_run, stopping=Event()))
    return [(piece.name, piece.outcome, piece.why) for piece in pieces]


def test_a_source_that_is_not_there_is_nothing(tmp_path: Path, target: Path) -> None:
    assert told(tmp_path / "none", target) == []
    assert not target.exists()


def test_a_source_that_is_a_link_is_not_followed(tmp_path: Path, target: Path) -> None:
    (tmp_path / "g").symlink_to("/etc")
    [(name, outcome, _)] = told(tmp_path / "g", target)
    assert (name, outcome) == ("g", SKIPPED)
    assert not target.exists()


def test_a_link_above_the_source_is_not_followed(tmp_path: Path, target: Path) -> None:
    (tmp_path / "elsewhere" / "g").mkdir(parents=True)
    (tmp_path / "elsewhere" / "g" / "secret").write_text("x")
    (tmp_path / "way").symlink_to("elsewhere")
    with opened(tmp_path) as top:
        assert count_files(top, ("way", "g"), Event()) == 0
        [piece] = copied(top, ("way", "g"), target, is_dry_run=False, stopping=Event())
    assert (piece.name, piece.outcome) == ("way/g", SKIPPED)
    assert "a link or a file is in the place of a folder" in piece.why
    assert not target.exists()


def test_a_copy_that_is_ended_leaves_no_half(source: Path, target: Path) -> None:
    stopping = Event()
    for name in ("a", "b"):
        (source / name).write_text(name)
    with opened(source.parent) as top:
        pieces = copied(top, ("g",), target, is_dry_run=False, stopping=stopping)
        assert next(pieces).outcome is CARRIED
        stopping.set()
        assert list(pieces) == []
    assert [path.name for path in target.iterdir()] == ["a"]


def test_a_long_file_is_not_read_to_its_end_when_the_import_is_ended(
    source: Path, target: Path
) -> None:
    (source / "a").touch()
    os.truncate(source / "a", 1 << 42)  # bytes, and none on the disk
    stopping = _ThirdLook()
    with opened(source.parent) as top:
        [piece] = copied(top, ("g",), target, is_dry_run=False, stopping=stopping)
    assert (piece.outcome, piece.why) == (SKIPPED, "it cannot be copied: the import was ended")
    assert list(target.iterdir()) == []


class _ThirdLook(Event):
    """Set from the third look on: one at the folder, one at the file, one while it is copied."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return self.looks > 2


def test_a_target_that_is_a_link_is_not_followed(tmp_path: Path, source: Path) -> None:
    (source / "a").write_text("a")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "to").symlink_to("elsewhere")
    for is_dry_run in (True, False):
        [(name, outcome, _)] = told(source, tmp_path / "to", is_dry_run=is_dry_run)
        assert (name, outcome) == ("g", SKIPPED)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_on_the_way_down_is_not_followed(tmp_path: Path, source: Path, target: Path) -> None:
    (source / "deep").mkdir()
    (source / "deep" / "a").write_text("a")
    (tmp_path / "elsewhere").mkdir()
    target.mkdir()
    (target / "deep").symlink_to(tmp_path / "elsewhere")
    for is_dry_run in (True, False):
        [(name, outcome, why)] = told(source, target, is_dry_run=is_dry_run)
        assert (name, outcome) == ("g/deep", SKIPPED)
        assert "stays" in why
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_same_content_under_another_time_is_there(source: Path, target: Path) -> None:
    target.mkdir()
    for name, ours in (("same", "abc"), ("longer", "abcd"), ("other", "abd")):
        (source / name).write_text("abc")
        (target / name).write_text(ours)
        os.utime(target / name, (1, 1))
    outcomes = {name: outcome for name, outcome, _ in told(source, target)}
    assert outcomes == {"g/same": THERE, "g/longer": SKIPPED, "g/other": SKIPPED}
    assert (target / "other").read_text() == "abd"


def test_what_lies_in_the_place_of_a_file_or_link_stays(source: Path, target: Path) -> None:
    (source / "file").write_text("x")
    (source / "link").symlink_to("file")
    (target / "file").mkdir(parents=True)
    (target / "link").write_text("mine")
    assert [outcome for _, outcome, _ in told(source, target)] == [SKIPPED, SKIPPED]
    assert (target / "link").read_text() == "mine"


def test_folders_keep_mode_and_time_and_nobody_becomes_someone_else(
    source: Path, target: Path
) -> None:
    (source / "d").mkdir()
    (source / "d" / "tool").write_text("x")
    (source / "d" / "tool").chmod(0o4755)
    (source / "d").chmod(0o500)
    os.utime(source / "d", (1_000_000_000, 1_000_000_000))
    told(source, target)
    assert stat.S_IMODE((target / "d" / "tool").stat().st_mode) == 0o755
    # Ours to write, or the next import could not.
    assert stat.S_IMODE((target / "d").stat().st_mode) == 0o700
    assert (target / "d").stat().st_mtime == 1_000_000_000
    (source / "d").chmod(0o700)


def test_half_a_file_of_an_import_that_was_cut_short_is_none(source: Path, target: Path) -> None:
    (source / "a").write_text("whole")
    target.mkdir()
    (target / ".a.importing").write_text("wh")
    assert told(source, target) == [("g/a", CARRIED, "")]
    assert [path.name for path in target.iterdir()] == ["a"]


def test_no_depth_exhausts_us(source: Path, target: Path) -> None:
    here = source
    for _ in range(300):
        here /= "d"
        here.mkdir()
    (here / "a").write_text("deep")
    [(name, outcome, _)] = told(source, target)
    assert (name.count("/d"), outcome) == (300, CARRIED)
    assert told(source, target)[0][1] == THERE


def test_a_dry_run_goes_into_folders_that_are_still_to_be_made(source: Path, target: Path) -> None:
    (source / "new" / "deep").mkdir(parents=True)
    (source / "new" / "deep" / "a").write_text("x")
    (source / "new" / "b").symlink_to("deep/a")
    wanted = [("g/new/b", CARRIED, ""), ("g/new/deep/a", CARRIED, "")]
    assert told(source, target, is_dry_run=True) == wanted
    target.mkdir()
    assert told(source, target, is_dry_run=True) == wanted
    assert list(target.iterdir()) == []
    assert told(source, target) == wanted


def test_a_folder_that_is_replaced_meanwhile_is_said_and_the_rest_goes_on(
    tmp_path: Path, source: Path, target: Path
) -> None:
    for name in ("a", "z"):
        (source / name).mkdir()
        (source / name / "file").write_text(name)
    (tmp_path / "elsewhere").mkdir()
    with opened(tmp_path) as top:
        pieces = copied(top, ("g",), target, is_dry_run=False, stopping=Event())
        first = next(pieces)
        (target / "a").rmdir()
        (target / "a").symlink_to(tmp_path / "elsewhere")
        [second] = pieces
    assert (first.name, first.outcome) == ("g/z/file", CARRIED)
    assert (second.name, second.outcome) == ("g/a", SKIPPED)
    assert list((tmp_path / "elsewhere").iterdir()) == []
