"""A real host as a child process, its log read line by line: for stories of a whole house."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

PATIENCE = 30.0  # seconds: for a start on a busy machine
COMMAND = (sys.executable, "-m", "hallporter")


class Host:
    """One `hallporter up` on a free port."""

    def __init__(self, home: Path, process: asyncio.subprocess.Process) -> None:
        self.home = home
        self.process = process
        self.url = ""
        self.lines: list[dict[str, Any]] = []
        self.on_event: Callable[[dict[str, Any]], None] | None = None
        self._ready = asyncio.Event()

    @property
    def token(self) -> str:
        return (self.home / "run" / "admin-token").read_text().strip()

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=10.0)

    async def read_log(self) -> None:
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            try:
                line = json.loads(raw)
            except ValueError:
                line = {"event": raw.decode("utf-8", "replace").rstrip(), "level": "raw"}
            self.lines.append(line)
            if line["event"] == "ready":
                self.url = line["url"]
                self._ready.set()
            if self.on_event is not None:
                self.on_event(line)
        self._ready.set()

    async def wait_ready(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._ready.wait()
        assert self.url, self.tail()

    async def printed(self) -> str:
        """The next line on stdout: small enough that a pipe holds it until someone asks."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return (await self.process.stdout.readline()).decode()

    async def link(self) -> str:
        """A fresh one-time link."""
        async with self.client() as operator:
            made = (await operator.post("/api/links")).json()
        return f"{self.url}{made['data']['path']}"

    def kill(self) -> None:
        """As a power cut would, for this process."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)

    async def end(self) -> int:
        """As an operator would."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    def tail(self) -> str:
        return "\n".join(json.dumps(line) for line in self.lines[-20:])


@contextlib.asynccontextmanager
async def running(
    home: Path, environment: Mapping[str, str] | None = None, *arguments: str
) -> AsyncIterator[Host]:
    """Ready when the block begins; gone when it ends, one way or the other."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--home",
        str(home),
        "up",
        "--port",
        "0",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        limit=1 << 24,
    )
    host = Host(home, process)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(host.read_log())
        try:
            await host.wait_ready()
            yield host
        finally:
            if process.returncode is None:
                await host.end()


def settings(home: Path, text: str) -> None:
    """Write `hallporter.toml`."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "hallporter.toml").write_text(text)


def marked_processes(home: Path) -> list[int]:
    """Pids of this home's boxes, found by the mark that everything in them carries."""
    mark = f"HALLPORTER_BOX={(home / 'run' / 'installation').read_text().strip()}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found
