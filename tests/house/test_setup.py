"""What `make` prepares: each step is told, done once, and done again for another Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 30.0  # seconds

# Stands in for a Python: makes a `.venv` of copies of itself, and installs nothing.
PYTHON = """#!/bin/sh
case "$*" in
-V) echo "Python {version}" ;;
*"-m venv"*)
    rm -rf .venv
    mkdir -p .venv/bin
    cp "$0" .venv/bin/python
    cp "$0" .venv/bin/pip
    ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("scripts/setup", "requirements/dev.txt", "pyproject.toml", "Makefile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    pythons = tmp_path / "bin"
    pythons.mkdir()
    install(pythons / "python3", "3.11.2")
    install(pythons / "python3.99", "3.99.0")
    return tmp_path


def install(python: Path, version: str) -> None:
    python.write_text(PYTHON.format(version=version))
    python.chmod(0o755)


def setup(checkout: Path, *words: str) -> list[str]:
    """The lines that a person sees."""
    path = f"{checkout / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "--silent", "setup", *words],
        cwd=checkout,
        env={**os.environ, "PATH": path, "PYTHON": "", "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return (done.stdout + done.stderr).splitlines()


def test_each_step_is_told_and_the_second_time_there_is_none(checkout: Path) -> None:
    pinned = (ROOT / "requirements" / "dev.txt").read_text().splitlines()
    count = sum("==" in line for line in pinned)
    assert setup(checkout) == [
        "setup: making .venv with Python 3.11.2",
        f"setup: installing {count} packages into .venv: this takes a minute or two",
        "setup: installing hallporter into .venv",
    ]
    assert setup(checkout) == []


def test_another_python_makes_it_anew_and_stays(checkout: Path) -> None:
    setup(checkout)
    assert setup(checkout, "PYTHON=python3.99")[0] == "setup: making .venv with Python 3.99.0"
    assert setup(checkout) == []
    assert setup(checkout, "PYTHON=python3")[0] == "setup: making .venv with Python 3.11.2"


def test_a_python_that_was_upgraded_or_is_gone_makes_it_anew(checkout: Path) -> None:
    setup(checkout, "PYTHON=python3.99")
    install(checkout / "bin" / "python3.99", "3.99.1")
    assert setup(checkout)[0] == "setup: making .venv with Python 3.99.1"
    (checkout / "bin" / "python3.99").unlink()
    assert setup(checkout)[0] == "setup: making .venv with Python 3.11.2"
