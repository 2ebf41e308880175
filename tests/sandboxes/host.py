"""A host to be killed: starts one box whose program has children, and waits."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.sandboxes import boxes


async def main(adapter: str, installation: str, run_dir: str, seconds: str) -> None:
    sandbox = boxes.make(adapter, installation, Path(run_dir))
    box = await sandbox.launch(boxes.forking(seconds))
    sys.stdout.write(f"{await boxes.line(box)} {await boxes.line(box)}\n")
    sys.stdout.flush()
    await box.wait()


asyncio.run(main(*sys.argv[1:]))
