"""Our own packages, where an agent under another user can read them."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("hallporter", "hallporter_runner", "hallporter_wire")


def readable_source(source: Path, aside: Path) -> Path:
    """`source` itself, or a copy of it at `aside` when its modes bar others.

    A checkout made by root under a strict umask is readable for root alone, and the agents of a
    root host are never root.
    """
    if os.geteuid() != 0 or all(_is_open(source / name) for name in PACKAGES):
        return source
    shutil.rmtree(aside, ignore_errors=True)
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        # copyfile leaves the modes behind; the umask must not bring them back.
        shutil.copytree(source / name, aside / name, copy_function=shutil.copyfile, ignore=ignored)
    for path in (aside, *aside.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return aside


def _is_open(package: Path) -> bool:
    return all(_others_may_read(path) for path in (package, *package.rglob("*")))


def _others_may_read(path: Path) -> bool:
    mode = path.stat().st_mode
    needed = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
    return mode & needed == needed
