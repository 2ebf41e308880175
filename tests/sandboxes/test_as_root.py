"""What changes when the host is root: a stage before the box, and somebody else inside."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hallporter.domain.brief import Mount
from hallporter.domain.errors import AgentRefusedError
from hallporter.sandboxes import machine
from hallporter.sandboxes.bubblewrap import Bubblewrap
from hallporter.sandboxes.ownership import hand_over
from tests.sandboxes import boxes

ROOT = Path(__file__).parents[2]
UID = 64_123  # nobody's
SCRATCH = "/var/tmp"


@pytest.fixture
async def sandbox() -> AsyncIterator[Bubblewrap]:
    made = Bubblewrap(installation=secrets.token_hex(4), uid=UID)
    yield made
    await made.sweep()


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that only root may enter."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    return folder


async def test_home_and_checkout_may_lie_where_only_root_may_go(
    sandbox: Bubblewrap, private: Path
) -> None:
    (private / "home/group").mkdir(parents=True)
    (private / "checkout").mkdir()
    (private / "checkout/runner.py").write_text("open('answer', 'w').write('from inside')")

    code, _, err = await boxes.run(
        sandbox,
        boxes.launch(
            *(machine.interpreter(), "/app/src/runner.py"),
            mounts=(
                Mount(source=private / "home/group", target="/workspace/group", writable=True),
                Mount(source=private / "checkout", target="/app/src", writable=False),
            ),
            workdir="/workspace/group",
        ),
    )

    assert (code, err) == (0, "")
    answer = private / "home/group/answer"
    assert answer.read_text() == "from inside"
    assert answer.stat().st_uid == UID


async def test_a_folder_of_the_operators_keeps_its_owner_and_must_be_writable_by_itself(
    sandbox: Bubblewrap, private: Path
) -> None:
    (private / "photos").mkdir(mode=0o755)
    mount = Mount(
        source=private / "photos", target="/workspace/extra/photos", writable=True, is_foreign=True
    )
    program = boxes.launch("touch", "/workspace/extra/photos/new", mounts=(mount,))

    with pytest.raises(AgentRefusedError, match=f"cannot be written by user {UID}.*chown -R {UID}"):
        await sandbox.launch(program)
    assert mount.source.stat().st_uid == 0

    mount.source.chmod(0o777)
    code, _, err = await boxes.run(sandbox, program)
    assert (code, err) == (0, "")
    assert mount.source.stat().st_uid == 0
    assert (mount.source / "new").stat().st_uid == UID


async def test_the_program_runs_as_the_given_user(sandbox: Bubblewrap) -> None:
    seconds = boxes.odd_seconds()
    box = await sandbox.launch(boxes.shell('id -u; sleep "$1"; true', seconds))
    assert await boxes.line(box) == "1000"

    owners = {
        Path(f"/proc/{pid}/comm").read_text().strip(): Path(f"/proc/{pid}").stat().st_uid
        for pid in boxes.sleepers(seconds)
    }
    box.kill()
    await boxes.end(box)

    assert owners["sh"] == UID


async def test_a_folder_to_read_that_is_closed_to_the_user_is_refused(
    sandbox: Bubblewrap, private: Path
) -> None:
    mount = Mount(source=private, target="/workspace/global", writable=False)

    with pytest.raises(AgentRefusedError, match=r"cannot be read by user .* chmod -R o\+rX"):
        await sandbox.launch(boxes.launch("true", mounts=(mount,)))


async def test_without_setpriv_the_probe_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "bwrap").symlink_to("/usr/bin/bwrap")

    bare = Bubblewrap(installation="bare", path=str(tmp_path))

    assert (await bare.probe()).problem == "setpriv is not installed: apt-get install util-linux"


def test_a_tree_is_handed_over_whole(tmp_path: Path) -> None:
    (tmp_path / "tree/a/b").mkdir(parents=True)
    (tmp_path / "tree/a/b/file").touch()

    hand_over(tmp_path / "tree", UID)

    owners = {path.stat().st_uid for path in (tmp_path / "tree").rglob("*")}
    assert owners == {UID}
    assert (tmp_path / "tree").stat().st_uid == UID


def test_a_link_is_handed_over_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts/file").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").symlink_to(tmp_path / "hosts/file")
    (tmp_path / "tree/folder").symlink_to(tmp_path / "hosts")

    hand_over(tmp_path / "tree", UID)

    assert (tmp_path / "tree/file").lstat().st_uid == UID
    assert (tmp_path / "tree/folder").lstat().st_uid == UID
    assert (tmp_path / "hosts").stat().st_uid == 0
    assert (tmp_path / "hosts/file").stat().st_uid == 0


def test_a_single_file_is_handed_over(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    hand_over(tmp_path / "file", UID)

    assert (tmp_path / "file").stat().st_uid == UID


def test_a_tree_that_looks_handed_over_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "tree/a").mkdir(parents=True)
    hand_over(tmp_path / "tree", UID)
    (tmp_path / "tree/a/deep").touch()

    hand_over(tmp_path / "tree", UID)

    assert (tmp_path / "tree/a/deep").stat().st_uid == 0


def test_all_of_it_holds_for_an_ordinary_user(tmp_path: Path) -> None:
    """The suites once more, as somebody without any rights."""
    bwrap, setpriv = shutil.which("bwrap"), shutil.which("setpriv")
    assert bwrap is not None
    assert setpriv is not None
    needed = {ROOT / name for name in ("src", "tests", "pyproject.toml")}
    needed |= {Path(sys.prefix), Path(os.path.realpath(sys.base_prefix))}
    suites = ["tests/contracts/test_sandboxes.py", "tests/sandboxes"]

    done = subprocess.run(
        [
            *(
                bwrap,
                "--dev-bind",
                "/",
                "/",
                *opened(needed),
                "--perms",
                "1777",
                "--tmpfs",
                SCRATCH,
            ),
            *("--die-with-parent", "--chdir", str(ROOT), "--"),
            *(setpriv, "--reuid", str(UID), "--regid", str(UID), "--clear-groups"),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites),
        ],
        env={
            "PATH": machine.PATH,
            "HOME": SCRATCH,
            "TMPDIR": SCRATCH,
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=55,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def opened(needed: set[Path]) -> list[str]:
    """For bubblewrap: put open folders over those that bar an ordinary user's way to these."""
    words: list[str] = []
    for path in sorted(needed):
        way = list(reversed(path.parents))
        barred = [place for place, folder in enumerate(way) if not folder.stat().st_mode & 0o001]
        if barred:
            if str(way[barred[0]]) not in words:
                words += ["--perms", "0755", "--tmpfs", str(way[barred[0]])]
            for folder in way[barred[0] + 1 :]:
                words += ["--perms", "0755", "--dir", str(folder)]
        words += ["--ro-bind", str(path), str(path)]
    return words
