"""When a host is killed, the watchman ends what it left; what others run is not touched."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys

import pytest

from hallporter.sandboxes.leftovers import MARK, Mark, end_all
from hallporter.sandboxes.watchman import clear_up, on_duty

HOST = """
import asyncio, sys
from hallporter.sandboxes.watchman import on_duty

async def main():
    with on_duty(*sys.argv[1:]):
        print("on duty", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def installation() -> str:
    return secrets.token_hex(4)


def stray(installation: str, run: str) -> subprocess.Popen[bytes]:
    """Something that nobody's death ends."""
    mark = Mark(installation=installation, run=run, name="stray")
    return subprocess.Popen(
        ["/bin/sleep", "60"],
        env={MARK: str(mark)},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )


async def ended(process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(10):
        return await asyncio.to_thread(process.wait)


async def test_what_a_killed_host_left_is_ended_and_its_successors_live(installation: str) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, installation, "first"], stdout=subprocess.PIPE
    )
    assert host.stdout is not None
    await asyncio.to_thread(host.stdout.readline)
    left, successor = stray(installation, "first"), stray(installation, "second")

    os.kill(host.pid, signal.SIGKILL)

    assert await ended(left) == -signal.SIGKILL
    assert successor.poll() is None
    await end_all(installation)
    await ended(successor)
    host.stdout.close()
    await ended(host)


async def test_an_orderly_end_needs_no_clearing_up(installation: str) -> None:
    other = stray(installation, "run")
    with on_duty(installation, "run"):
        pass

    assert other.poll() is None
    await clear_up(installation, "run")
    assert await ended(other) == -signal.SIGKILL
