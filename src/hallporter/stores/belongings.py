"""What groups and logs have in the home folder, as far as it can be removed."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from hallporter.domain.ids import Folder

_LIVE_LOG = "hallporter.log"


class Belongings:
    """`forgetting.Belongings` and `retention.Logs` on one home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._aside = home / "data" / "forgotten"

    async def set_aside(self, folder: Folder) -> int:
        return await asyncio.to_thread(self._set_aside, folder)

    async def destroy(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._aside, ignore_errors=True)

    async def remove_logs(self, before: datetime) -> int:
        return await asyncio.to_thread(self._remove_logs, before.timestamp())

    def _set_aside(self, folder: Folder) -> int:
        place = self._aside / secrets.token_hex(8)
        place.mkdir(mode=0o700, parents=True)
        owned = {
            "group": self._home / "groups" / folder,
            "sessions": self._home / "data" / "sessions" / folder,
            "ipc": self._home / "data" / "ipc" / folder,
            "media": self._home / "data" / "media" / folder,
        }
        for name, path in owned.items():
            if path.exists():
                path.rename(place / name)
        return sum(len(files) for _, _, files in os.walk(place))

    def _remove_logs(self, before: float) -> int:
        places = [*self._home.glob("logs"), *self._home.glob("groups/*/logs")]
        return sum(1 for place in places for _ in _drop_old(place, before))


def _drop_old(place: Path, before: float) -> Iterator[str]:
    # Through open folders and never along links: agents write here, and must not choose what goes.
    for _, _, files, here in os.fwalk(place, follow_symlinks=False):
        for name in files:
            found = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_mtime < before and name != _LIVE_LOG:
                os.unlink(name, dir_fd=here)
                yield name
