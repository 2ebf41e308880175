"""Putting files where an agent can write too: through open folders, never along links."""

from __future__ import annotations

import contextlib
import os

from hallporter.removal import is_directory, remove_in

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE = 0o644  # the agent runs under another uid when the host is root


def place_file(folder: int, name: str, content: bytes) -> None:
    """All of it or nothing: written aside, then renamed in."""
    aside = _aside(name)
    with contextlib.suppress(FileNotFoundError):  # of a host that was cut short
        os.unlink(aside, dir_fd=folder)
    with os.fdopen(os.open(aside, _NEW_FILE, _READABLE, dir_fd=folder), "wb") as file:
        file.write(content)
        # Not by its name, which may lead elsewhere by now.
        os.fchmod(file.fileno(), _READABLE)
    os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)


def replace_file(folder: int, name: str, content: bytes) -> None:
    """The same, and a folder in its place goes. Not for the event loop: much may be in there."""
    for place in (name, _aside(name)):
        with contextlib.suppress(FileNotFoundError):
            if is_directory(folder, place):
                remove_in(folder, place)
    place_file(folder, name, content)


def ensure_folder(parent: int, name: str) -> None:
    """A folder under this name; a link or a file in its place goes."""
    with contextlib.suppress(FileNotFoundError):
        if is_directory(parent, name):
            return
        os.unlink(name, dir_fd=parent)
    os.mkdir(name, dir_fd=parent)
    owner = os.fstat(parent)
    if owner.st_uid != os.geteuid():
        # An agent may be at work there already, under its own uid.
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=parent, follow_symlinks=False)


def _aside(name: str) -> str:
    return f".{name}.tmp"
