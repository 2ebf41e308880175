from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hallporter.sandboxes.doorway import through


@pytest.fixture(params=["tied", "untied"])
def setpriv(request: pytest.FixtureRequest) -> str:
    return (shutil.which("setpriv") or "") if request.param == "tied" else ""


def pass_through(words: list[str]) -> tuple[int, str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10)
    return done.returncode, done.stdout


def test_the_program_gets_its_words_as_they_are(setpriv: str) -> None:
    words = ["printf", "%s|", "a b", "$HOME", "'", ""]

    assert pass_through(through(words, host=os.getpid(), setpriv=setpriv, doors=())) == (
        0,
        "a b|$HOME|'||",
    )


def test_every_door_is_passed_by_the_process_that_becomes_the_program(
    setpriv: str, tmp_path: Path
) -> None:
    doors = [str(tmp_path / "first door"), str(tmp_path / "second")]

    words = through(["sh", "-c", "echo $$"], host=os.getpid(), setpriv=setpriv, doors=doors)
    code, number = pass_through(words)

    assert code == 0
    assert [Path(door).read_text() for door in doors] == [number, number]


def test_a_closed_door_stops_the_program(setpriv: str, tmp_path: Path) -> None:
    doors = [str(tmp_path / "no such folder/door")]

    words = through(["echo", "started"], host=os.getpid(), setpriv=setpriv, doors=doors)

    assert pass_through(words)[1] == ""


def test_nothing_starts_for_a_host_that_is_gone(setpriv: str) -> None:
    words = through(["echo", "started"], host=os.getppid(), setpriv=setpriv, doors=())

    assert pass_through(words) == (125, "")
