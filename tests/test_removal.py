"""Removing what an agent could make of its folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hallporter.domain.ids import Folder
from hallporter.home import Home, open_home
from hallporter.removal import remove
from hallporter.stores.belongings import Belongings

DEPTH = 3000  # deeper than Python recurses, and more than a process may have open files
FAMILY = Folder("family")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def dig(folder: Path, depth: int, name: str = "d") -> None:
    """Folder in folder, deeper than a path may be long."""
    folder.mkdir()
    handle = os.open(folder, os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=handle)
        inner = os.open(name, os.O_DIRECTORY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)


async def test_no_depth_of_folders_keeps_a_group_s_files(home: Home) -> None:
    dig(home.groups_dir / FAMILY, DEPTH)

    belongings = Belongings(home.path)
    await belongings.set_aside([FAMILY])
    await belongings.destroy()

    assert [path.name for path in home.groups_dir.iterdir()] == ["global"]


@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_a_folder_that_is_closed_to_its_owner_is_removed(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "family"
    inner = folder / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    for closed in (inner, inner.parent, folder):
        closed.chmod(mode)

    remove(folder)

    assert not folder.exists()


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").touch()
    folder = tmp_path / "family"
    folder.mkdir()
    (folder / "link").symlink_to(treasure)
    (tmp_path / "itself").symlink_to(treasure)

    remove(folder)
    remove(tmp_path / "itself")
    remove(tmp_path / "never-there")

    assert [path.name for path in tmp_path.iterdir()] == ["treasure"]
    assert (treasure / "gold").exists()
