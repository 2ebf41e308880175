"""What a running box uses."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")  # bytes


def memory_of(pid: int, proc: Path = _PROC) -> int:
    """Bytes in memory of a process and all that came from it; 0 when it is gone.

    Pages that several of them share count once for each: it is an upper bound.
    """
    total = 0
    waiting = [pid]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            total += int((proc / str(one) / "statm").read_text().split()[1]) * _PAGE
            waiting += _children(proc / str(one))
        except OSError:
            continue  # it ended while we looked
    return total


def _children(process: Path) -> list[int]:
    """Those of every thread: any of them may have forked."""
    found: list[int] = []
    for thread in (process / "task").iterdir():
        found += map(int, (thread / "children").read_text().split())
    return found
