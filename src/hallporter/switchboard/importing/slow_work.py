"""Work for a slow disk, on a thread of its own, that can be cut short."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from hallporter.domain.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

T = TypeVar("T")


async def on_thread(fn: Callable[[], T], stopping: Event) -> T:
    """Whoever is cancelled meanwhile asks for its end and waits for it: what it reads from must not
    be closed before. Raises `UnavailableError` when someone else asked."""
    work = asyncio.get_running_loop().run_in_executor(None, fn)
    try:
        await asyncio.wait([work])
    except asyncio.CancelledError:
        stopping.set()
        await asyncio.wait([work])
        work.exception()  # of something that was cut short: nobody asks any more
        raise
    if stopping.is_set():
        work.exception()
        message = "the import was cut short, because the host ends: import again when it runs"
        raise UnavailableError(message)
    return work.result()
