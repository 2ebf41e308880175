"""Handing folders over: what a box may write must belong to the user it runs as."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def hand_over(path: Path, uid: int) -> None:
    """Make `uid` the owner of a folder and all in it, or of a file; only root can.

    Every launch asks for this, so a folder that was handed over is not searched: only its direct
    entries are what the host adds. A big tree takes its time: not for the event loop.
    """
    try:
        top = os.open(path, _FOLDER)
    except NotADirectoryError:
        os.chown(path, uid, uid)
        return
    walk = _Walk(top, uid)
    try:
        walk.go(is_known=os.fstat(top).st_uid == uid)
    finally:
        walk.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """A folder on the way down, and which of its folders are still to be entered."""

    identity: tuple[int, int]
    folders: list[str]


class _Walk:
    """Through one tree with one open folder at a time, so that no depth of it can exhaust us.

    The tree was written by an agent: root goes by open folders and never along links, so that it
    is not led out. What vanishes meanwhile needs no owner.
    """

    def __init__(self, top: int, uid: int) -> None:
        self._here = top
        self._uid = uid

    def go(self, *, is_known: bool) -> None:
        """A folder comes after all in it: one that is handed over is so as a whole, even if an
        earlier walk was cut short."""
        levels = [self._look(is_known=is_known)]
        while True:
            if levels[-1].folders:
                if self._step(levels[-1].folders.pop()):
                    levels.append(self._look(is_known=False))
                continue
            os.chown(self._here, self._uid, self._uid)
            levels.pop()
            if not levels:
                return
            self._step("..")
            if _identity(self._here) != levels[-1].identity:
                # Moved meanwhile, and we with it. What is above still has its old owner, so the
                # next launch looks again.
                return

    def end(self) -> None:
        os.close(self._here)

    def _look(self, *, is_known: bool) -> _Level:
        """Hand over the files here; in a known folder only what is new counts."""
        folders = []
        with os.scandir(self._here) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if is_known and entry.stat(follow_symlinks=False).st_uid == self._uid:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                        continue
                    os.chown(
                        *(entry.name, self._uid, self._uid),
                        dir_fd=self._here,
                        follow_symlinks=False,
                    )
        return _Level(identity=_identity(self._here), folders=folders)

    def _step(self, name: str) -> bool:
        """Whether the folder of this name is still one."""
        try:
            there = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self._here)
        except (FileNotFoundError, NotADirectoryError):
            return False
        os.close(self._here)
        self._here = there
        return True


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino
