"""Handing folders over: what a box may write must belong to the user it runs as."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def hand_over(path: Path, uid: int) -> None:
    """Make `uid` the owner of a folder and all in it, or of a file; only root can.

    Every launch asks for this, so a folder that looks handed over is not searched: itself and
    its direct entries are what the host makes.
    """
    if _is_handed_over(path, uid):
        return
    if not path.is_dir():
        os.chown(path, uid, uid)
        return
    # Through open folders and never along links: the tree was written by an agent, and root
    # must not be led out of it.
    for _, folders, files, here in os.fwalk(path, follow_symlinks=False):
        os.chown(here, uid, uid)
        for name in (*folders, *files):
            os.chown(name, uid, uid, dir_fd=here, follow_symlinks=False)


def _is_handed_over(path: Path, uid: int) -> bool:
    if path.stat().st_uid != uid:
        return False
    if not path.is_dir():
        return True
    with os.scandir(path) as entries:
        return all(entry.stat(follow_symlinks=False).st_uid == uid for entry in entries)
