"""The answers to requests, left where their agents look for them."""

from __future__ import annotations

import contextlib
import itertools
import os
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.placing import place_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from hallporter.domain.ids import Folder
    from hallporter.mailroom.folders import Folders

log = structlog.get_logger(__name__)

_KEPT_FOR = timedelta(hours=1)  # foreign programs never look at them
_MOST = 1000  # in a folder
_LOOKED_AT = 5000  # names in one go


class Results:
    """`results/` of every group."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders

    def put(self, folder: Folder, results: Mapping[str, bytes], now: datetime) -> None:
        """By the names of their requests. An agent that has spoilt the place gets none."""
        try:
            with self._folders.box(folder, "results") as place:
                for name, content in results.items():
                    _put(place, name, content)
                _clear(place, before=(now - _KEPT_FOR).timestamp())
        except OSError as error:
            log.warning("result.not_written", folder=folder, error=str(error))


def _put(place: int, name: str, content: bytes) -> None:
    try:
        place_file(place, name, content)
    except OSError as error:
        log.warning("result.not_written", name=name, error=str(error))


def _clear(place: int, *, before: float) -> None:
    """Old ones go, and the oldest of too many."""
    files = []
    with os.scandir(place) as entries:
        for entry in itertools.islice(entries, _LOOKED_AT):
            with contextlib.suppress(FileNotFoundError):
                files.append((entry.stat(follow_symlinks=False).st_mtime, entry.name))
    files.sort()
    surplus = len(files) - _MOST
    for number, (at, name) in enumerate(files):
        if number < surplus or at < before:
            with contextlib.suppress(OSError):  # a folder that the agent made: its own business
                os.unlink(name, dir_fd=place)
