"""`explain` on what a host that is gone has left open."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.cli.command import hallporter
from tests.journeys.host import PATIENCE, Host, running


async def state_of(host: Host, message: str) -> str:
    async with host.client() as client:
        answer = await client.get(f"/api/messages/{message}/fate")
    return str(answer.json().get("state"))


async def test_after_the_host_s_end_nothing_is_told_to_be_running(tmp_path: Path) -> None:
    async with running(tmp_path) as host:
        async with host.client() as client:
            body = {"text": "work slowly for 60 seconds", "id": "slow-1"}
            await client.post("/api/chats/web:main/messages", json=body)
        async with asyncio.timeout(PATIENCE):
            while await state_of(host, "slow-1") != "running":  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)
        served = await hallporter(tmp_path, "explain", "slow-1")
        host.kill()
        await host.process.wait()
    unserved = await hallporter(tmp_path, "explain", "slow-1")
    assert (served.code, unserved.code) == (0, 0), served.err + unserved.err
    assert served.out.splitlines()[0].endswith(" in web:main: running")
    assert unserved.out.splitlines()[0].endswith(" in web:main: cut short by the end of the host")
    assert "No host runs now" in unserved.out
