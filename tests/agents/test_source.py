"""A root host's agents are not root: they must be able to read the runner all the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hallporter.agents.source import PACKAGES, readable_source

SOURCE = Path(__file__).parents[2] / "src"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only a root host changes its user")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A checkout made under umask 077."""
    folder = tmp_path / "src"
    for name in PACKAGES:
        shutil.copytree(SOURCE / name, folder / name)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


def test_an_open_source_is_used_where_it_lies(tmp_path: Path, closed: Path) -> None:
    for path in closed.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)

    assert readable_source(closed, tmp_path / "aside") == closed
    assert not (tmp_path / "aside").exists()


@needs_root
def test_a_closed_source_is_copied_with_modes_that_others_can_read(
    tmp_path: Path, closed: Path
) -> None:
    old = os.umask(0o077)
    try:
        found = readable_source(closed, tmp_path / "aside")
        again = readable_source(closed, tmp_path / "aside")
    finally:
        os.umask(old)

    assert found == again == tmp_path / "aside"
    assert (found / "hallporter_runner" / "__main__.py").stat().st_mode & 0o777 == 0o644
    assert all(p.stat().st_mode & 0o005 == 0o005 for p in found.rglob("*") if p.is_dir())
