from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "fastapi",
    "pydantic",
    "httpx",
    "starlette",
    "uvicorn",
    "structlog",
    "re2",
    "prometheus_client",
)

PROGRAM = """
import json, sys
from hallporter.cli.main import run
try:
    run()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["up", "--help"],
        ["chat", "--help"],
        ["groups", "--help"],
        ["groups", "add", "--help"],
        ["groups", "set", "--help"],
        ["groups", "remove", "--help"],
        ["tokens", "create", "--help"],
        ["backup", "--help"],
        ["restore", "--help"],
        ["forget", "--help"],
        ["link", "--help"],
        ["status", "--help"],
        ["logs", "--help"],
        ["doctor", "--help"],
        ["explain", "--help"],
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    imported = set(json.loads(done.stderr))
    assert done.stdout
    assert imported.isdisjoint(HEAVY)
    assert "<bool>" not in done.stdout, "a switch has no value"
