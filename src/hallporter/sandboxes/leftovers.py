"""Finding and ending processes by the mark that every box's processes carry."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.sandboxes.child import gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The variable that every process of a box has in its environment.
MARK = "HALLPORTER_BOX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What the processes of one box carry: the installation, the host's run, the box."""

    installation: str
    run: str
    name: str

    def __str__(self) -> str:
        return f"{self.installation}/{self.run}/{self.name}"


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


async def end_run(installation: str, run: str) -> int:
    """The same for one run of the host: those of its successor live."""
    return len(await _end(lambda found: found.startswith(f"{installation}/{run}/")))


def seen(installation: str) -> frozenset[str]:
    """The names of this installation's boxes that have processes now."""
    start = f"{installation}/"
    marks = {_mark_of(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    return frozenset(mark.rpartition("/")[2] for mark in marks if mark.startswith(start))


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
    """From its environment; or from its words, which are open where the environment is not: of
    a bubblewrap that is still making its box."""
    return _after(f"{MARK}=", _strings(entry / "environ")) or _following(
        MARK, _strings(entry / "cmdline")
    )


def _strings(file: Path) -> list[str]:
    try:
        return file.read_bytes().decode(errors="replace").split("\0")
    except OSError:  # gone, or another user's
        return []


def _after(start: str, strings: list[str]) -> str:
    return next((text.removeprefix(start) for text in strings if text.startswith(start)), "")


def _following(word: str, words: list[str]) -> str:
    return next((after for before, after in pairwise(words) if before == word), "")
