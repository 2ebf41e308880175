"""What the sandboxes' tests share: boxes to start, and a look at the machine's processes."""

from __future__ import annotations

import asyncio
import os
import secrets
import select
from pathlib import Path

from hallporter.domain.brief import Launch, Limits, Mount
from hallporter.domain.ids import AgentId
from hallporter.ports import Box, Sandbox
from hallporter.sandboxes.bubblewrap import Bubblewrap
from hallporter.sandboxes.process import Process

PATIENCE = 10.0  # seconds; a bound, never a measure
ADAPTERS = ("bubblewrap", "process")


def make(adapter: str, installation: str, run_dir: Path) -> Sandbox:
    if adapter == "bubblewrap":
        return Bubblewrap(installation=installation)
    return Process(installation=installation, run_dir=run_dir)


def launch(
    *argv: str,
    mounts: tuple[Mount, ...] = (),
    workdir: str = "/",
    environment: dict[str, str] | None = None,
    limits: Limits | None = None,
) -> Launch:
    return Launch(
        name=AgentId(f"test-{secrets.token_hex(6)}"),
        argv=argv,
        mounts=mounts,
        workdir=workdir,
        environment=environment or {},
        limits=limits or Limits(),
    )


def shell(script: str, *words: str, limits: Limits | None = None) -> Launch:
    return launch("sh", "-c", script, "sh", *words, limits=limits)


def forking(seconds: str) -> Launch:
    """A program with two children, one of them in a session of its own; each says `up`. It does
    not listen to signals and ends when it is told something."""
    return shell(
        'trap "" TERM INT HUP; setsid sh -c "$2" "$1" & sh -c "$2" "$1" & read x',
        seconds,
        'echo up; sleep "$0"; :',
    )


async def finish(box: Box, said: bytes = b"") -> tuple[int, str, str]:
    """Say something, close, and hear the program out."""
    async with asyncio.timeout(PATIENCE):
        box.stdin.write(said)
        box.stdin.close()
        out, err = await asyncio.gather(box.stdout.read(), box.stderr.read())
        return await box.wait(), out.decode(), err.decode()


async def run(sandbox: Sandbox, what: Launch, said: bytes = b"") -> tuple[int, str, str]:
    return await finish(await sandbox.launch(what), said)


async def line(box: Box) -> str:
    async with asyncio.timeout(PATIENCE):
        return (await box.stdout.readline()).decode().strip()


async def end(box: Box) -> int:
    """Wait for the end and read what is left, so that no pipe stays open."""
    async with asyncio.timeout(PATIENCE):
        code = await box.wait()
        await asyncio.gather(box.stdout.read(), box.stderr.read())
        return code


def odd_seconds() -> str:
    """A length of sleep that no other process on this machine has among its words."""
    return f"86400.{secrets.randbelow(10**12):012}"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def open_files() -> list[str]:
    """Numbers of this process's open files, the listing's own among them."""
    return names(Path("/proc/self/fd"))


def sleepers(seconds: str) -> list[int]:
    """The processes that have it among their words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if seconds.encode() in words:
            found.append(int(entry.name))
    return found


def all_gone(pids: list[int]) -> bool:
    """Wait for processes that are not our children to end."""
    for pid in pids:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([pidfd], [], [], PATIENCE)[0]:
                return False
        finally:
            os.close(pidfd)
    return True
