"""The command line of the runner: which kind of agent answers, or `mcp` for the host's tools."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from hallporter_runner.agents import KINDS
from hallporter_runner.service import serve
from hallporter_runner.workplace import surrounding_workplace

if TYPE_CHECKING:
    from types import FrameType

    from hallporter_runner.workplace import Workplace

_MCP = "mcp"
_FAILED, _USAGE = 1, 2  # exit codes


def main(arguments: list[str]) -> int:
    """Run one agent, or the tools of one, from its stdin to its end; the exit code."""
    if len(arguments) != 1 or arguments[0] not in (*KINDS, _MCP):
        print(
            f"usage: python3 -m hallporter_runner {{{','.join((*KINDS, _MCP))}}}", file=sys.stderr
        )
        return _USAGE
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    workplace = surrounding_workplace()
    if arguments[0] == _MCP:
        return _serve_tools(workplace)
    return serve(arguments[0], workplace)


def _serve_tools(workplace: Workplace) -> int:
    # Looked up by name, like the kinds: it needs a library that they do without.
    try:
        server = import_module("hallporter_runner.server")
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        print(
            "the MCP server needs the package mcp: pip install 'hallporter[agents]'",
            file=sys.stderr,
        )
        return _FAILED
    code: int = server.serve(workplace)
    return code


def _leave(number: int, _frame: FrameType | None) -> None:
    # Needed even for SIGTERM: the first process of a PID namespace ignores what it does not handle.
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
