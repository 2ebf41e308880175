"""Finding and ending processes by the mark that every box's processes carry."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.sandboxes.child import gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The variable of the environment that a box is started with.
MARK = "HALLPORTER_BOX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What the processes of one box carry; boxes of other installations carry another."""

    installation: str
    name: str

    def __str__(self) -> str:
        return f"{self.installation}/{self.name}"


def kill_box(mark: Mark) -> None:
    """SIGKILL to all processes of one box."""
    with _killed(lambda found: found == str(mark)):
        pass


async def end_box(mark: Mark) -> None:
    """Return when no process of one box is left."""
    await _end(lambda found: found == str(mark))


async def end_all(installation: str) -> int:
    """Return when no process of any box of this installation is left; how many boxes had some."""
    return len(await _end(lambda found: found.startswith(f"{installation}/")))


async def _end(matches: Callable[[str], bool]) -> set[str]:
    ended: set[str] = set()
    # Again until none is found: one may have forked while the others were being looked for.
    while True:
        with _killed(matches) as processes:
            if not processes:
                return ended
            for pidfd, found in processes:
                ended.add(found)
                await gone(pidfd)


@contextmanager
def _killed(matches: Callable[[str], bool]) -> Iterator[list[tuple[int, str]]]:
    """Kill what carries a matching mark; gives their pidfds and marks."""
    with ExitStack() as stack:
        processes: list[tuple[int, str]] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or not matches(_mark_of(entry)):
                continue
            with suppress(OSError):
                pidfd = os.pidfd_open(int(entry.name))
                stack.callback(os.close, pidfd)
                # Looked at again under the pidfd: by then the number may name another process.
                found = _mark_of(entry)
                if matches(found):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                    processes.append((pidfd, found))
        yield processes


def _mark_of(entry: Path) -> str:
    try:
        environment = (entry / "environ").read_bytes()
    except OSError:  # gone, or another user's
        return ""
    start = f"{MARK}=".encode()
    for setting in environment.split(b"\0"):
        if setting.startswith(start):
            return setting.removeprefix(start).decode(errors="replace")
    return ""
