"""Doing what a finding says can be done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hallporter.domain.finding import Chmod, MakeFolder, SweepBoxes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hallporter.domain.finding import Fix

_PRIVATE = 0o700


async def mend(fix: Fix, *, sweep: Callable[[], Awaitable[None]]) -> str:
    """What was done, as a sentence. Raises `OSError` when it could not be."""
    match fix:
        case Chmod(path=path, mode=mode):
            await asyncio.to_thread(path.chmod, mode)
            return f"{path} has mode {mode:04o} now"
        case MakeFolder(path=path):
            await asyncio.to_thread(path.mkdir, _PRIVATE, parents=True, exist_ok=True)
            return f"{path} was made"
        case SweepBoxes():
            await sweep()
            return "what was left was ended and removed"
