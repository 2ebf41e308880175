"""A newcomer: a fresh clone in an empty folder, `make run`, and a first answer from a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
SETUP_PATIENCE = 600.0  # seconds: everything is installed from nothing
PATIENCE = 60.0  # seconds


# A coverage run must not follow into the clone: it is another tree.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COV")}


async def run(*argv: str, cwd: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, (argv, out, err)
    return out.decode()


async def clone_into(folder: Path) -> None:
    """The files as a clone would have them, with what is not committed yet."""
    listing = await run(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT
    )
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@contextlib.asynccontextmanager
async def make_run(folder: Path, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        "make",
        "run",
        f"PORT={port}",
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                await process.wait()


async def answers(url: str) -> bool:
    async with httpx.AsyncClient() as client:
        with contextlib.suppress(httpx.TransportError):
            return (await client.get(f"{url}/readyz")).status_code == 200
    return False


@pytest.mark.timeout(900)
async def test_make_run_in_a_fresh_clone_gives_a_first_answer_from_inside_bubblewrap(
    tmp_path: Path,
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    folder = private / "hallporter"
    await clone_into(folder)
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    async with make_run(folder, port) as make:
        async with asyncio.timeout(SETUP_PATIENCE):
            while not await answers(url):
                assert make.returncode is None, "make run ended by itself"
                await asyncio.sleep(0.2)
        command = (".venv/bin/hallporter", "--home", "home")
        hello = await run(*command, "chat", "--once", "hello", cwd=folder)
        inside = await run(*command, "chat", "--once", "where are you?", cwd=folder)
        status = await run(*command, "status", "--json", cwd=folder)

    assert "Hello" in hello
    assert "bubblewrap" in inside
    assert "bubblewrap" in status
    assert not await answers(url)
