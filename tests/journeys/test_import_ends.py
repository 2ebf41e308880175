"""An import that would take long ends with its host, and with whoever asked for it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from tests.imports.home import Source, lived_in
from tests.journeys.host import running
from tests.journeys.test_service import logged

END = 10.0  # seconds that an end may take

# As a NanoClaw that is stuck in a transaction.
HOLDER = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.asynccontextmanager
async def held(source: Source) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, str(source.database)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"held\n"
        yield
    finally:
        process.stdin.close()
        await process.wait()


async def test_a_sigterm_during_an_import_ends_the_host_in_time(tmp_path: Path) -> None:
    source = lived_in(tmp_path)
    body = {"path": str(source.path), "config": str(source.config)}
    async with (
        held(source),
        running(tmp_path / "home") as host,
        host.client() as client,
        asyncio.TaskGroup() as tasks,
    ):
        asking = tasks.create_task(client.post("/api/imports/nanoclaw", json=body))
        await logged(host, "import.began")
        host.process.terminate()
        async with asyncio.timeout(END):
            assert await host.process.wait() == 0
        answer = await asking
        assert (answer.status_code, "import again" in answer.json()["message"]) == (503, True)
        assert not (host.home / "run" / "importing").exists()
        assert not [line for line in host.lines if line["level"] in ("raw", "error")], host.tail()


async def test_an_import_ends_when_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    source = lived_in(tmp_path)
    body = {"path": str(source.path), "config": str(source.config)}
    async with running(tmp_path / "home") as host, host.client() as client:
        async with held(source):
            async with asyncio.TaskGroup() as tasks:
                asking = tasks.create_task(client.post("/api/imports/nanoclaw", json=body))
                await logged(host, "import.began")
                asking.cancel()
            await logged(host, "import.cut_short")
        answer = await client.post("/api/imports/nanoclaw", json=body)
        assert answer.status_code == 200, answer.text
        assert '"report"' in answer.text.splitlines()[-1]
        assert not (host.home / "run" / "importing").exists()


async def test_an_import_ends_in_the_middle_of_its_answer(tmp_path: Path) -> None:
    source = lived_in(tmp_path)
    for number in range(2000):
        source.write(f"groups/main/{number}.md")
    body = {"path": str(source.path), "config": str(source.config)}
    async with running(tmp_path / "home") as host, host.client() as client:
        async with client.stream("POST", "/api/imports/nanoclaw", json=body) as answer:
            await anext(answer.aiter_lines())
        await logged(host, "import.cut_short")
        answered = await client.post("/api/imports/nanoclaw", json=body)
        assert '"report"' in answered.text.splitlines()[-1]
