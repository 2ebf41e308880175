"""A host of the benchmark: a home of its own, groups that are there already, a child process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from hallporter.clock import SystemClock
from hallporter.domain.chat import ChatSeen
from hallporter.domain.group import Group
from hallporter.domain.ids import ChatId, Folder
from hallporter.home import open_home
from hallporter.sandboxes.machine import interpreter
from hallporter.stores.sqlite import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hallporter.books import Tx

PATIENCE = 60.0  # seconds for anything a host has to do
AGENT = (interpreter(), "-I", "-S", str(Path(__file__).with_name("agent.py")))


@dataclass(slots=True)
class Host:
    """One `hallporter up`."""

    home: Path
    process: asyncio.subprocess.Process
    started: int  # nanoseconds, before the process was made
    url: str = ""
    words: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    announced: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pid(self) -> int:
        return self.process.pid

    def client(self) -> httpx.AsyncClient:
        """As the operator, with as many connections as are asked for."""
        token = (self.home / "run" / "admin-token").read_text().strip()
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            trust_env=False,
        )

    async def listen(self) -> None:
        """Read its log, so that it never waits for a reader."""
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            self.words.append(raw.decode("utf-8", "replace").rstrip())
            if not self.url:
                self._look_for_url(raw)
        self.announced.set()

    async def ready(self) -> None:
        """Until it says that it is; raises with its last words when it ends instead."""
        async with asyncio.timeout(PATIENCE):
            await self.announced.wait()
        if not self.url:
            raise RuntimeError("the host did not start:\n" + "\n".join(self.words))

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            await self.process.wait()

    def _look_for_url(self, raw: bytes) -> None:
        with contextlib.suppress(ValueError):
            line = json.loads(raw)
            if line["event"] == "ready":
                self.url = line["url"]
                self.announced.set()


async def furnish(home: Path, groups: int, *, slots: int = 5) -> None:
    """A home with this many groups beside the main one, all served by the stub agent."""
    _write_settings(home, slots)
    clock = SystemClock()
    now = clock.now()

    def register(tx: Tx) -> None:
        for number in range(groups):
            chat = chat_of(number)
            group = Group(
                chat=chat,
                name=f"Bench {number}",
                folder=folder_of(number),
                trigger="@Andy",
                requires_trigger=False,
                is_main=False,
                added_at=now,
            )
            tx.chats.seen(ChatSeen(chat=chat, channel="web", at=now, name=group.name))
            tx.groups.add(group)

    async with open_store(open_home(home).database, clock) as store:
        await store.write(register)


def chat_of(number: int) -> ChatId:
    return ChatId(f"web:bench{number}")


def folder_of(number: int) -> Folder:
    return Folder(f"bench{number}")


@contextlib.asynccontextmanager
async def running(home: Path) -> AsyncIterator[Host]:
    """Ready when the block begins, gone when it ends."""
    started = time.time_ns()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hallporter", "--home", str(home), "up", "--port", "0"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if _is_neutral(name)},
    )
    host = Host(home, process, started)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(host.listen(), name="log")
        try:
            await host.ready()
            yield host
        finally:
            if process.returncode is None:
                await host.end()


def _is_neutral(name: str) -> bool:
    """Whoever runs this may have settings of their own for a host of theirs."""
    return not name.startswith("HALLPORTER_")


def _write_settings(home: Path, slots: int) -> None:
    home.mkdir(mode=0o700)
    command = json.dumps(AGENT)  # a list of strings is the same in TOML
    (home / "hallporter.toml").write_text(
        f"[host]\nmax_concurrent_containers = {slots}\n"
        f'[agent]\nkind = "command"\nsandbox = "bubblewrap"\ncommand = {command}\n'
    )
