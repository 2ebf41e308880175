"""The home folder: what is there, whose it is, and who else may look into it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.finding import Chmod, Finding, MakeFolder, good, problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from hallporter.home import Home

_OTHERS = 0o077  # what group and others may do
_FOLDER, _FILE = 0o700, 0o600
ABOUT = "home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path of the home; `mode` is None when nothing is there."""

    path: Path
    is_private: bool
    is_needed: bool
    is_folder: bool = True  # as it should be
    mode: int | None = None
    owner: int = -1
    is_usable: bool = True  # of the kind it should be, and we may read and write it


def look(home: Home, database: Path) -> Sequence[Place]:
    """Every place of the home that has a rule."""
    data = home.path / "data"
    private = (home.path, home.run_dir, home.path / "store", home.log_file.parent, home.media_dir)
    shared = (home.global_dir, home.errors_dir, home.claims_dir, data / "sessions")
    files = (
        home.dotenv,
        database,
        home.run_dir / "lock",
        home.run_dir / "door",
        home.run_dir / "admin-token",
        home.run_dir / "installation",
    )
    return [
        *(_seen(Place(path=path, is_private=True, is_needed=True)) for path in private),
        *(_seen(Place(path=path, is_private=False, is_needed=True)) for path in shared),
        *(
            _seen(Place(path=path, is_private=True, is_needed=False, is_folder=False))
            for path in files
        ),
    ]


def judge(home: Path, places: Iterable[Place], *, uid: int) -> list[Finding]:
    found = [finding for place in places for finding in _judge_one(place, uid)]
    return found or [good(ABOUT, f"{home} is complete and closed to others")]


def _judge_one(place: Place, uid: int) -> list[Finding]:
    path = place.path
    if place.mode is None:
        if not place.is_needed:
            return []
        what, do = f"{path} is missing", f"mkdir {path}"
        return [problem(ABOUT, what, do, MakeFolder(path=path))]
    if not place.is_usable:
        kind = "folder" if place.is_folder else "file"
        what = f"{path} is no {kind} that this user can read and write"
        return [problem(ABOUT, what, f"look at it: ls -ld {path}; move it away, or chown it")]
    if uid not in (0, place.owner):
        what = f"{path} belongs to another user ({place.owner})"
        return [problem(ABOUT, what, f"chown {uid} {path}")]
    if place.is_private and place.mode & _OTHERS:
        wanted = _FOLDER if place.is_folder else _FILE
        may = "look into" if place.is_folder else "read"
        what = f"others may {may} {path} (mode {place.mode:04o})"
        fix = Chmod(path=path, mode=wanted)
        return [problem(ABOUT, what, f"chmod {wanted:o} {path}", fix)]
    return []


def _seen(place: Place) -> Place:
    try:
        status = place.path.stat()
    except FileNotFoundError:
        return place
    except OSError:
        return Place(
            path=place.path,
            is_private=place.is_private,
            is_needed=place.is_needed,
            is_folder=place.is_folder,
            mode=0,
            is_usable=False,
        )
    is_kind = stat.S_ISDIR(status.st_mode) if place.is_folder else stat.S_ISREG(status.st_mode)
    rights = os.R_OK | os.W_OK | (os.X_OK if place.is_folder else 0)
    return Place(
        path=place.path,
        is_private=place.is_private,
        is_needed=place.is_needed,
        is_folder=place.is_folder,
        mode=stat.S_IMODE(status.st_mode),
        owner=status.st_uid,
        is_usable=is_kind and os.access(place.path, rights),
    )
