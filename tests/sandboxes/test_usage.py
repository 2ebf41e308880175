from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hallporter.sandboxes.usage import memory_of

PATIENCE = 10.0  # seconds

# A parent of little memory whose child holds 64 MiB, and says so.
PROGRAM = """
import subprocess, sys
child = "held = bytearray(b'x' * (64 << 20)); print('held', flush=True); input()"
subprocess.run([sys.executable, "-S", "-c", child])
"""


async def test_the_memory_of_a_box_is_that_of_all_its_processes() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-c", PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        await process.stdout.readline()
        used = memory_of(process.pid)
        await process.communicate(b"\n")
    assert 64 << 20 < used < 160 << 20
    assert memory_of(process.pid) == 0


def test_a_process_that_goes_while_one_looks_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "7" / "task" / "7").mkdir(parents=True)
    (tmp_path / "7" / "statm").write_text("100 10 0 0 0 0 0")
    (tmp_path / "7" / "task" / "7" / "children").write_text("8 7 ")
    assert memory_of(7, tmp_path) == memory_of(7, tmp_path) > 0
