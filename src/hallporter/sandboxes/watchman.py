"""Someone who stays behind: when the host is gone, what it left running is ended.

A box dies with its host by itself, except in the first milliseconds of its life, when the kernel
has not been told yet; and a plain process may have forked. So one small process holds the end of
a pipe whose other end only the host has. When that closes without a word, the host was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from hallporter.sandboxes.leftovers import end_run

if TYPE_CHECKING:
    from collections.abc import Iterator

# A shell waits, because it is a tenth of the size of what comes after it.
_WAIT = 'if read -r _; then exit 0; fi; exec "$@"'
_ROUNDS = 10  # looks, because a box may still be in the making when its host dies
_PAUSE = 0.2  # seconds between them


@contextlib.contextmanager
def on_duty(installation: str, run: str) -> Iterator[None]:
    """Watches over the boxes of this process until the block ends."""
    theirs, ours = os.pipe()
    try:
        watchman = subprocess.Popen(
            ["/bin/sh", "-c", _WAIT, "watchman", sys.executable, "-m", __name__, installation, run],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a signal to our group must not reach it
        )
    finally:
        os.close(theirs)
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # somebody ended it
            os.write(ours, b"\n")
        os.close(ours)
        watchman.wait()


async def clear_up(installation: str, run: str) -> None:
    """End what a killed host left running."""
    for _ in range(_ROUNDS):
        await end_run(installation, run)
        await asyncio.sleep(_PAUSE)


if __name__ == "__main__":
    asyncio.run(clear_up(*sys.argv[1:]))
