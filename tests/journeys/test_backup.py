"""A backup under load, cut down by kill -9, restored elsewhere: everything is there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.command import COMMAND, hallporter
from tests.journeys.host import Host, running, settings

GROUPS = ("garden", "kitchen", "cellar")
PATIENCE = 60.0  # seconds: for answers on a busy machine
BULK = 48 << 20  # bytes: so that a backup takes long enough to be cut down
SETTINGS = '[host]\nassistant_name = "Bea"\nlog_level = "debug"\n[retention]\nlogs_days = 90\n'


@dataclass
class Load:
    """Someone who never stops talking; `said` is what the host has taken."""

    host: Host
    said: list[str] = field(default_factory=list)
    _number: int = 0

    async def talk(self) -> None:
        async with self.host.client() as client:
            while True:
                with contextlib.suppress(httpx.HTTPError):  # the host may be killed
                    await self.say(client)

    async def say(self, client: httpx.AsyncClient) -> None:
        self._number += 1
        name = f"load-{self._number}"
        chat = f"web:{GROUPS[self._number % len(GROUPS)]}"
        answer = await client.post(f"/api/chats/{chat}/messages", json={"text": "hi", "id": name})
        assert answer.status_code == 202, answer.text
        self.said.append(name)


@contextlib.asynccontextmanager
async def talking(host: Host) -> AsyncIterator[Load]:
    load = Load(host)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(load.talk())
        try:
            yield load
        finally:
            task.cancel()


async def furnish(host: Host) -> str:
    """Groups with settings and files of their own, and a token; its secret."""
    async with host.client() as client:
        for name in GROUPS:
            body = {
                "chat": f"web:{name}",
                "name": name.title(),
                "folder": name,
                "requires_trigger": False,
            }
            answer = await client.post("/api/groups", json=body)
            assert answer.status_code == 201, answer.text
            folder = host.home / "groups" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "notes.md").write_text(f"what the {name} needs")
            session = host.home / "data" / "sessions" / name
            session.mkdir(parents=True, exist_ok=True)
            (session / "memory.json").write_text(f'{{"place": "{name}"}}')
        asked = {"role": "studio_operator", "subject": "ann"}
        made = await client.post("/api/tokens", json=asked)
        assert made.status_code == 201, made.text
        return str(made.json()["data"]["token"])


async def fate(client: httpx.AsyncClient, message: str) -> dict[str, Any]:
    answer = await client.get(f"/api/messages/{message}/fate")
    assert answer.status_code == 200, (message, answer.text)
    found: dict[str, Any] = answer.json()
    return found


async def answered(client: httpx.AsyncClient, message: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while (found := await fate(client, message))["state"] != "answered":
            assert found["state"] in ("queued", "running", "failed"), found
            await asyncio.sleep(0.1)
    return found


async def settled(client: httpx.AsyncClient, message: str) -> dict[str, Any]:
    """Its fate once nothing of it can change any more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await answered(client, message)
            is_delivered = found["steps"][-1]["what"] == "the reply was delivered"
            if is_delivered and found["turn"]["state"] != "running":
                return found
            await asyncio.sleep(0.1)


async def until_exists(path: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while not path.exists():  # noqa: ASYNC110  another process makes it
            await asyncio.sleep(0.005)


async def start_backup(home: Path, file: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        "--home",
        str(home),
        "backup",
        str(file),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )


def files_of(home: Path) -> dict[str, bytes]:
    kept = [home / "hallporter.toml", *home.glob("groups/*/notes.md")]
    kept += home.glob("data/sessions/*/memory.json")
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in kept}


@pytest.mark.timeout(180)
async def test_a_backup_under_load_restored_elsewhere_has_everything_and_goes_on(
    tmp_path: Path,
) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar.gz"
    settings(home, SETTINGS)
    async with running(home) as host:
        token = await furnish(host)
        async with talking(host) as load, host.client() as client:
            while len(load.said) < 20:  # noqa: ASYNC110  the load tells nobody
                await asyncio.sleep(0.01)
            told = await settled(client, load.said[0])
            before = list(load.said)
            done = await hallporter(home, "backup", str(file), "--json")
            during = len(load.said) - len(before)
        assert done.code == 0, done.err
        assert during > 0, "the host was held up"
        groups = (await client_get(host, "/api/groups"))["data"]
    # What an agent prints may be on its way into its log.
    assert [name for name in done.json["left_out"] if "/logs/" not in name] == []

    restored = await hallporter(other, "restore", str(file))
    assert restored.code == 0, restored.err
    assert files_of(other) == files_of(home)
    async with running(other) as host:
        assert (await client_get(host, "/api/groups"))["data"] == groups
        async with host.client() as client:
            assert await fate(client, before[0]) == told
            for name in before:
                await answered(client, name)
            client.headers["Authorization"] = f"Bearer {token}"
            body = {"text": "are you still there?", "id": "after"}
            await client.post("/api/chats/web:garden/messages", json=body)
            await answered(client, "after")


async def client_get(host: Host, path: str) -> dict[str, Any]:
    async with host.client() as client:
        found: dict[str, Any] = (await client.get(path)).json()
        return found


@pytest.mark.timeout(180)
async def test_a_backup_that_is_killed_leaves_no_half_file_and_an_unharmed_home(
    tmp_path: Path,
) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar.gz"
    settings(home, SETTINGS)
    async with running(home) as host:
        await furnish(host)
        (home / "groups" / "garden" / "bulk").write_bytes(os.urandom(BULK))
        async with talking(host) as load, host.client() as client:
            backup = await start_backup(home, file)
            await until_exists(file.with_name(f"{file.name}.part"))
            backup.send_signal(signal.SIGKILL)
            assert await backup.wait() == -signal.SIGKILL
            assert not file.exists()
            await load.say(client)
            await answered(client, load.said[-1])
        done = await hallporter(home, "backup", str(file))
        assert done.code == 0, done.err
        assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar.gz", "home"]
    with sqlite3.connect(home / "hallporter.db") as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (await hallporter(other, "restore", str(file))).code == 0
    assert files_of(other) == files_of(home)


@pytest.mark.timeout(180)
async def test_a_host_that_is_killed_does_not_spoil_the_backup(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar.gz"
    settings(home, SETTINGS)
    async with running(home) as host:
        await furnish(host)
        (home / "groups" / "garden" / "bulk").write_bytes(os.urandom(BULK))
        async with talking(host) as load:
            while len(load.said) < 10:  # noqa: ASYNC110  the load tells nobody
                await asyncio.sleep(0.01)
            before = list(load.said)
            backup = await start_backup(home, file)
            await until_exists(file.with_name(f"{file.name}.part"))
            host.kill()
            assert await backup.wait() == 0
    assert (await hallporter(other, "restore", str(file))).code == 0
    for path in (home, other):
        async with running(path) as host, host.client() as client:
            for name in before:
                await answered(client, name)
