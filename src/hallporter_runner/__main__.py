"""The command line of the runner: which kind of agent answers."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter_runner.agents import KINDS
from hallporter_runner.service import serve
from hallporter_runner.workplace import Workplace

if TYPE_CHECKING:
    from types import FrameType

_USAGE = 2  # exit code


def main(arguments: list[str]) -> int:
    """Run one agent from its stdin to its end; the exit code."""
    if len(arguments) != 1 or arguments[0] not in KINDS:
        print(f"usage: python3 -m hallporter_runner {{{','.join(KINDS)}}}", file=sys.stderr)
        return _USAGE
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    workplace = Workplace(
        root=Path(os.environ.get("HALLPORTER_WORKSPACE", "/workspace")),
        sandbox=os.environ.get("HALLPORTER_SANDBOX", ""),
    )
    return serve(arguments[0], workplace)


def _leave(number: int, _frame: FrameType | None) -> None:
    # Needed even for SIGTERM: the first process of a PID namespace ignores what it does not handle.
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
