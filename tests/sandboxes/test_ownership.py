from __future__ import annotations

import asyncio
import os
import resource
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hallporter.domain.brief import Mount
from hallporter.sandboxes.bubblewrap import Bubblewrap
from hallporter.sandboxes.ownership import hand_over
from tests.sandboxes import boxes

UID = 64_123  # nobody's
DEPTH = 3000  # more than Python's recursion, and as a path more than the kernel takes


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tree"
    folder.mkdir()
    yield folder
    # pytest cannot remove what is so deep.
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def make_deep(top: Path) -> None:
    """A chain of folders, with a file in the last one."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        here = enter(here)
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def owners(top: Path) -> set[int]:
    """Of a chain and the file at its end."""
    found = set()
    here = os.open(top, os.O_RDONLY)
    while True:
        found |= {os.fstat(here).st_uid}
        (name,) = os.listdir(here)  # noqa: PTH208  a handle, not a path
        found |= {os.stat(name, dir_fd=here, follow_symlinks=False).st_uid}
        if name == "file":
            os.close(here)
            return found
        here = enter(here)


def enter(here: int) -> int:
    inner = os.open("d", os.O_RDONLY, dir_fd=here)
    os.close(here)
    return inner


@contextmanager
def few_handles() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(boxes.open_files()) + 64, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_depth_of_a_tree_exhausts_the_host(tree: Path) -> None:
    make_deep(tree)
    before = boxes.open_files()

    with few_handles():
        hand_over(tree, UID)

    assert owners(tree) == {UID}
    assert boxes.open_files() == before


def test_a_wide_tree_is_handed_over_whole(tree: Path) -> None:
    for name in ("a", "b", "c"):
        for inner in ("x", "y"):
            (tree / name / inner).mkdir(parents=True)
            (tree / name / inner / "file").touch()

    hand_over(tree, UID)

    assert {path.stat().st_uid for path in (tree, *tree.rglob("*"))} == {UID}


def test_one_new_entry_does_not_cause_a_search_of_the_rest(tree: Path) -> None:
    (tree / "old").mkdir()
    hand_over(tree, UID)
    (tree / "old/deep").touch()
    (tree / "new").mkdir()
    (tree / "new/file").touch()
    (tree / "loose").touch()

    hand_over(tree, UID)

    told = {path.name: path.stat().st_uid for path in tree.rglob("*")}
    assert told == {"old": UID, "deep": 0, "new": UID, "file": UID, "loose": UID}


def test_a_folder_is_handed_over_after_all_in_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a walk that was cut short would never be finished."""
    (tree / "a").mkdir()
    (tree / "a/file").touch()
    chown = os.chown

    def fail_at_file(path: str | int, *args: int, **more: Any) -> None:
        if path == "file":
            raise PermissionError(path)
        chown(path, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "chown", fail_at_file)
        with pytest.raises(PermissionError):
            hand_over(tree, UID)

    hand_over(tree, UID)

    assert (tree / "a/file").stat().st_uid == UID


@pytest.mark.parametrize("what", ["vanishes", "becomes a link", "moves away"])
def test_a_tree_that_changes_meanwhile_is_no_error(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").touch()
    (tree / "a/b").mkdir(parents=True)
    opened = os.open

    def change(path: Path | str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "b" and what == "vanishes":
            (tree / "a/b").rmdir()
        if path == "b" and what == "becomes a link":
            (tree / "a/b").rmdir()
            (tree / "a/b").symlink_to(tmp_path / "outside")
        if path == ".." and what == "moves away" and (tree / "a/b").exists():
            (tree / "a/b").rename(tmp_path / "outside/b")
        return opened(path, flags, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", change)
        hand_over(tree, UID)

    assert (tmp_path / "outside").stat().st_uid == 0
    assert (tmp_path / "outside/file").stat().st_uid == 0


async def test_the_host_goes_on_while_a_tree_is_handed_over(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Bubblewrap(installation=secrets.token_hex(4), uid=UID)
    loop = asyncio.get_running_loop()
    answers: list[str] = []

    async def answer() -> str:
        return "still here"

    def ask_the_loop(path: Path, uid: int) -> None:
        asked = asyncio.run_coroutine_threadsafe(answer(), loop)
        answers.append(asked.result(timeout=boxes.PATIENCE))
        hand_over(path, uid)

    monkeypatch.setattr("hallporter.sandboxes.bubblewrap.hand_over", ask_the_loop)

    mount = Mount(source=tree, target="/workspace/group", writable=True)
    code, _, _ = await boxes.run(sandbox, boxes.launch("true", mounts=(mount,)))

    assert code == 0
    assert answers == ["still here"]
