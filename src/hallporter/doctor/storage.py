"""What a home takes on the disk, and what is left of it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.switchboard.status import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hallporter.home import Home

_REASON = ".reason.txt"  # stands beside the file it is about


def storage_of(home: Home, database: Path) -> Storage:
    """Looks at every file of the groups: not for the event loop's thread."""
    disk = shutil.disk_usage(home.path)
    return Storage(
        database=sum(map(_size, (database, *_beside(database)))),
        groups=folder_size(home.groups_dir),
        logs=folder_size(home.log_file.parent),
        errors=sum(1 for file in files_below(home.errors_dir) if not file.name.endswith(_REASON)),
        free=disk.free,
        total=disk.total,
    )


def folder_size(folder: Path) -> int:
    """Bytes of the files below; links are not followed, what cannot be read is left out."""
    return sum(map(_size, files_below(folder)))


def files_below(folder: Path) -> Iterator[Path]:
    """However deep an agent has made them; what lies deeper than a path can say is left out."""
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield Path(entry.path)


def _beside(database: Path) -> list[Path]:
    return [database.with_name(f"{database.name}-{part}") for part in ("wal", "shm")]


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0
