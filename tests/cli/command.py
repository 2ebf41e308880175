"""The real command as a child process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds: for a start on a busy machine
COMMAND = (sys.executable, "-m", "hallporter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


async def hallporter(home: Path, *arguments: str, stdin: str = "") -> Done:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--home",
        str(home),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "COLUMNS": "200"},
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    done = Done(code=process.returncode, out=out.decode(), err=err.decode())
    assert "Traceback" not in done.err, done.err
    return done
