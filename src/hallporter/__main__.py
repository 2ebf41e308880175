"""`python -m hallporter`: the command."""

from __future__ import annotations

from hallporter.cli.main import run

run()
