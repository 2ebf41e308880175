"""Removing folders that an agent could write to, whatever depth, modes or links it made there."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700


@contextlib.contextmanager
def opened(path: Path | str, parent: int | None = None) -> Iterator[int]:
    """A folder's handle; a link to one is refused."""
    handle = os.open(path, _DIRECTORY, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


def is_directory(parent: int, name: str) -> bool:
    """Whether it is a folder itself, and no link to one."""
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def empty(folder: int) -> int:
    """All that is in an open folder goes; a link goes, and what it leads to stays. How many files
    it was."""
    count = 0
    while left := os.listdir(folder):
        count += sum(_remove(folder, name) for name in left)
    return count


def remove(path: Path) -> int:
    """A folder with all that is in it; one that is not there is gone already. How many files."""
    with opened(path.parent) as parent:
        return remove_in(parent, path.name)


def remove_in(parent: int, name: str) -> int:
    """The same in an open folder."""
    try:
        is_folder = is_directory(parent, name)
    except FileNotFoundError:
        return 0
    if not is_folder:
        os.unlink(name, dir_fd=parent)
        return 1
    open_up(parent, name)
    with opened(name, parent) as folder:
        count = empty(folder)
    os.rmdir(name, dir_fd=parent)
    return count


def _remove(top: int, name: str) -> int:
    """Folders in a folder are moved up to the top first: no depth of them can exhaust us."""
    if not is_directory(top, name):
        os.unlink(name, dir_fd=top)
        return 1
    count = 0
    open_up(top, name)
    with opened(name, top) as folder:
        for inner in os.listdir(folder):  # noqa: PTH208  a handle, not a path
            if is_directory(folder, inner):
                open_up(folder, inner)
                os.rename(inner, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=folder)
                count += 1
    os.rmdir(name, dir_fd=top)
    return count


def open_up(parent: int, name: str) -> None:
    """A folder that its owner has closed to themselves can be neither read nor moved."""
    place = os.open(name, _PLACE, dir_fd=parent)
    try:
        # Through the handle: by its name it may be a link by now. Another's we may not change.
        with contextlib.suppress(PermissionError):
            os.chmod(f"/proc/self/fd/{place}", _OURS)  # noqa: PTH101  a handle, not a path
    finally:
        os.close(place)
