"""A runner with a workspace of its own, ended with the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hallporter_wire.stdin import AgentInput, encode_input
from tests.runner.program import Program

Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the demo agent on a prompt."""
    with ExitStack() as stack:

        def start_demo(
            prompt: str, *, through: int | None = 1, session_id: str | None = None
        ) -> Program:
            argv = [sys.executable, "-m", "hallporter_runner", "demo"]
            program = stack.enter_context(Program(argv, workspace=tmp_path))
            agent_input = AgentInput(
                prompt=prompt,
                session_id=session_id,
                group_folder="main",
                chat_jid="web:main",
                is_main=True,
                through=through,
            )
            program.begin(encode_input(agent_input))
            return program

        yield start_demo
