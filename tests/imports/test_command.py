"""`hallporter import nanoclaw` as people type it, on a house that does not run."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, hallporter
from tests.imports.home import MAIN, WEB, empty, kept, lived_in, picture

PATIENCE = 30.0  # seconds


async def test_a_dry_run_leaves_the_home_as_it_was_and_an_import_does_what_it_said(
    tmp_path: Path,
) -> None:
    source, home = lived_in(tmp_path), tmp_path / "home"
    await hallporter(home, "groups", "list")
    before, theirs = kept(home), picture(source.path)
    dry = await hallporter(home, *source.arguments, "--dry-run")
    assert dry.code == 0, dry.err
    assert dry.out.startswith("Nothing was written. This is what an import of ")
    assert kept(home) == before
    wet = await hallporter(home, *source.arguments)
    assert wet.code == 0, wet.err
    assert wet.out.splitlines()[0] == f"{source.path} is imported:"
    assert wet.out.splitlines()[1:] == dry.out.splitlines()[1:]
    assert "messages     11            0              0" in wet.out
    assert wet.err.splitlines()[0] == "import: 0 %"
    assert wet.err.splitlines()[-1] == "import: 100 %"
    again = await hallporter(home, "import", "nanoclaw", str(source.database), "--json")
    assert again.json["counts"]["messages"] == {"carried": 0, "there": 11, "skipped": 0}
    assert picture(source.path) == theirs
    groups = await hallporter(home, "groups", "list", "--json")
    assert groups.json[0]["chat"] == MAIN


async def test_what_a_killed_import_has_left_goes_at_the_next_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    left = home / "run" / "importing" / "copy.db"
    left.parent.mkdir(parents=True)
    left.write_text("someone's messages")
    done = await hallporter(home, "groups", "list")
    assert done.code == 0, done.err
    assert not left.parent.exists()


async def test_the_report_says_once_what_is_so_of_many(tmp_path: Path) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    for number in range(7):
        source.say(WEB, f"m{number}", " ", "2026-02-01T09:00:00Z")
    done = await hallporter(tmp_path / "home", *source.arguments)
    assert "left out: messages, m0, m1, m2, m3, m4, …: it has no text (7 times)" in done.out


async def test_at_a_terminal_there_is_a_bar(tmp_path: Path) -> None:
    source = lived_in(tmp_path)
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("--home", str(tmp_path / "home"), *source.arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    async with asyncio.timeout(PATIENCE):
        await process.communicate()
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert process.returncode == 0
    assert "19/19" in shown.replace(" ", "")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda _path: None, "no NanoClaw v1 is at"),
        (lambda path: (path / "store").mkdir(parents=True), "there is no store/messages.db in it"),
        (lambda path: _file(path, b"not a database"), "cannot be read: it is no SQLite file"),
        (lambda path: _file(path, b""), "is not NanoClaw v1's"),
    ],
)
async def test_what_is_no_nanoclaw_is_refused_in_one_sentence(
    tmp_path: Path, make: Callable[[Path], None], told: str
) -> None:
    make(tmp_path / "nanoclaw")
    done = await hallporter(tmp_path / "home", "import", "nanoclaw", str(tmp_path / "nanoclaw"))
    assert (done.code, done.out) == (1, "")
    assert told in done.err
    assert done.err.count("\n") == 1


def _file(path: Path, content: bytes) -> None:
    (path / "store").mkdir(parents=True)
    (path / "store" / "messages.db").write_bytes(content)
