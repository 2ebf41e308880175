"""A folder that another program's agents wrote to: entered step by step, and never along a link."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

Parts = tuple[str, ...]

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe would wait for someone to write into it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST = 1 << 20  # bytes of a file that is read at once
_IN_THE_WAY = {
    errno.ELOOP: "it is a link, and those are not followed",
    errno.ENOTDIR: "a link or a file is in the place of a folder",
}


@contextlib.contextmanager
def entered(top: int | None, parts: Parts) -> Iterator[int | None]:
    """The folder's handle; None when it is not there. Raises `OSError`."""
    if top is None:
        yield None
        return
    here = os.dup(top)
    try:
        for part in parts:
            there = _open(part, FOLDER, here)
            os.close(here)
            here = there
    except FileNotFoundError:
        os.close(here)
        yield None
        return
    except OSError:
        os.close(here)
        raise
    try:
        yield here
    finally:
        os.close(here)


def names_in(top: int, parts: Parts) -> list[str]:
    """What lies in a folder, by name; nothing in one that cannot be entered."""
    try:
        with entered(top, parts) as folder:
            return [] if folder is None else sorted(os.listdir(folder))  # noqa: PTH208  a handle
    except OSError:
        return []


def is_folder(top: int, parts: Parts) -> bool:
    try:
        with entered(top, parts) as folder:
            return folder is not None
    except OSError:
        return False


def open_file(name: str, folder: int) -> BinaryIO:
    """Only a regular one. Raises `OSError`."""
    file = os.fdopen(_open(name, _FILE, folder), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file", name)
    return file


def read_file(name: str, folder: int) -> bytes:
    """All of a small one. Raises `OSError`."""
    with open_file(name, folder) as file:
        words = file.read(_LONGEST + 1)
    if len(words) > _LONGEST:
        raise OSError(errno.EFBIG, f"it has more than {_LONGEST:,} bytes", name)
    return words


def _open(name: str, how: int, folder: int) -> int:
    try:
        return os.open(name, how, dir_fd=folder)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        raise OSError(error.errno, _IN_THE_WAY[error.errno], name) from error
