"""A disk without room, as the system says it."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hallporter.domain.errors import DiskError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def needing_room(path: Path) -> Iterator[None]:
    """What is written below `path` for the house itself; a lack of room is told as such."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        message = f"the disk is full: make room where {path} lies"
        raise DiskError(message, path=str(path)) from error
