"""A waiting chat never waits for an idle timer: 50 groups, 5 slots, agents that stay alive."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hallporter.sandboxes.machine import interpreter
from tests.journeys.host import running, settings
from tests.journeys.test_kill import LEDGER, is_final

GROUPS = 50
EACH = 4
SLOTS = 5


@pytest.mark.rule("R15")
@pytest.mark.timeout(300)
async def test_fifty_groups_on_five_slots_are_all_answered_though_agents_stay_alive(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    command = f'["{interpreter()}", "{LEDGER}"]'
    settings(home, f'[agent]\nkind = "command"\ncommand = {command}\nsandbox = "bubblewrap"\n')
    chats = [f"web:crowd{number}" for number in range(GROUPS)]
    async with running(home) as host, host.client() as client:
        for chat in chats:
            folder = chat.partition(":")[2]
            body = {"chat": chat, "name": folder, "folder": folder, "requires_trigger": False}
            assert (await client.post("/api/groups", json=body)).status_code == 201
        tokens = []
        async with asyncio.TaskGroup() as senders:
            for number in range(EACH):
                for place, chat in enumerate(chats):
                    token = f"tok-{place:x}-{number}"
                    tokens.append(token)
                    body = {"text": token, "id": token}
                    senders.create_task(client.post(f"/api/chats/{chat}/messages", json=body))

        async with asyncio.timeout(240):
            for token in tokens:
                await is_final(client, token)

        states = [
            (await client.get(f"/api/messages/{token}/fate")).json()["state"] for token in tokens
        ]
        assert states == ["answered"] * (GROUPS * EACH)
        report = (await client.get("/api/status")).json()["data"]
        assert len(report["agents"]) <= SLOTS
