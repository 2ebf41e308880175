from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hallporter.doctor import folders
from hallporter.doctor.examining import mended
from hallporter.doctor.folders import Place
from hallporter.domain.finding import Finding, Level, MakeFolder, problem
from hallporter.home import Home, admin_token, installation, open_home

FOLDERS = ("run", "store", "logs", "groups/global", "data/ipc/errors", "data/claims")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    opened = open_home(tmp_path / "home")
    admin_token(opened)
    installation(opened)
    opened.dotenv.write_text("KEY=value\n")
    opened.dotenv.chmod(0o600)
    opened.database.touch(0o600)
    return opened


def look(home: Home) -> list[Finding]:
    return folders.judge(home.path, folders.look(home, home.database), uid=os.geteuid())


async def mend(home: Home) -> list[Finding]:
    async def sweep() -> None:
        raise AssertionError

    return await mended(look(home), sweep=sweep)


def test_a_home_as_it_is_made_has_no_fault(home: Home) -> None:
    (found,) = look(home)
    assert (found.level, found.about) == (Level.OK, "home")


@pytest.mark.parametrize("name", FOLDERS)
async def test_a_missing_folder_is_found_and_made(home: Home, name: str) -> None:
    path = home.path / name
    for below in path.glob("*"):
        below.unlink()
    path.rmdir()
    (found,) = look(home)
    (done,) = await mend(home)
    assert found.is_wrong
    assert (found.what, found.do) == (f"{path} is missing", f"mkdir {path}")
    assert done.mended == f"{path} was made"
    assert not done.is_wrong
    assert path.is_dir()
    assert [one.level for one in look(home)] == [Level.OK]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (".", 0o700),
        ("run", 0o700),
        ("store", 0o700),
        ("logs", 0o700),
        (".env", 0o600),
        ("hallporter.db", 0o600),
        ("run/admin-token", 0o600),
        ("run/installation", 0o600),
    ],
)
async def test_what_others_may_see_is_found_and_closed(home: Home, name: str, mode: int) -> None:
    path = home.path / name
    path.chmod(0o755)
    (found,) = look(home)
    (done,) = await mend(home)
    assert found.is_wrong
    assert "others may" in found.what
    assert found.do == f"chmod {mode:o} {path}"
    assert done.mended == f"{path} has mode {mode:04o} now"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert [one.level for one in look(home)] == [Level.OK]


def test_a_file_where_a_folder_should_be_is_left_to_people(home: Home) -> None:
    home.claims_dir.rmdir()
    home.claims_dir.write_text("in the way")
    (found,) = look(home)
    assert found.is_wrong
    assert found.fix is None
    assert "is no folder" in found.what


def test_a_path_below_a_file_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    found = look(Home(path=tmp_path / "home"))
    assert all(finding.is_wrong for finding in found)


def test_what_belongs_to_another_user_is_told(tmp_path: Path) -> None:
    place = Place(path=tmp_path, is_private=True, is_needed=True, mode=0o700, owner=4711)
    (found,) = folders.judge(tmp_path, [place], uid=1000)
    assert found.what == f"{tmp_path} belongs to another user (4711)"
    assert found.do == f"chown 1000 {tmp_path}"
    assert folders.judge(tmp_path, [place], uid=0)[0].level is Level.OK


async def test_what_cannot_be_mended_says_so(home: Home) -> None:
    async def sweep() -> None:
        raise AssertionError

    fix = MakeFolder(path=home.dotenv / "below")
    (done,) = await mended([problem("home", "it is missing", "make it", fix)], sweep=sweep)
    assert done.is_wrong
    assert done.do == "make it (it was tried: Not a directory)"
