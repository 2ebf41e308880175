"""What an agent can ask of a real host: by MCP from one program, in plain words from another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hallporter.sandboxes.machine import interpreter
from tests.journeys.host import Host, running, settings

PATIENCE = 30.0  # seconds; the machine may be busy
TOOLSMITH = Path(__file__).parents[1] / "programs" / "toolsmith.py"
KIN = {"chat": "web:kin", "name": "Kin", "folder": "kin", "requires_trigger": False}
FAR_AWAY = {"schedule_type": "once", "schedule_value": "2099-01-01T09:00:00"}


class Ear:
    """Everything said in a chat from now on, in order."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def hears(self, fits: Callable[[str], bool]) -> str:
        """The next words that fit."""
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line.startswith("data:"):
                    text = str(json.loads(line.removeprefix("data:")).get("text", ""))
                    if fits(text):
                        return text
        raise AssertionError("the stream has ended")


@contextlib.asynccontextmanager
async def listening(client: httpx.AsyncClient, chat: str) -> AsyncIterator[Ear]:
    async with client.stream("GET", f"/api/chats/{chat}/events") as response:
        yield Ear(response)


async def say(client: httpx.AsyncClient, text: str, chat: str = "web:main") -> None:
    answer = await client.post(f"/api/chats/{chat}/messages", json={"text": text})
    assert answer.status_code == 202, answer.text


@contextlib.asynccontextmanager
async def tools(host: Host, folder: str, work: Path) -> AsyncIterator[Client]:
    """The tools as an agent of the folder has them, started by someone who does not know whether
    it is main."""
    (work / folder).mkdir(parents=True)
    (work / folder / "ipc").symlink_to(host.home / "data" / "ipc" / folder)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hallporter_runner", "mcp"],
        env={"HALLPORTER_WORKSPACE": str(work / folder)},
    )
    async with Client(stdio_client(server)) as client:
        yield client


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    told: dict[str, Any] = result.structured_content
    return told


async def refusal(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (content,) = result.content
    return str(getattr(content, "text", ""))


async def ids(client: Client) -> list[str]:
    return [task["id"] for task in (await call(client, "list_tasks"))["tasks"]]


async def test_a_reminder_that_was_asked_for_in_plain_words_comes(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as host, host.client() as client:
        async with listening(client, "web:main") as ear:
            await say(client, "remind me in 5 seconds to stand up")
            answer = await ear.hears(lambda text: text.startswith("I will remind you"))
            reminder = await ear.hears(lambda text: text.startswith("Reminder"))
            await say(client, "every monday at 9 count to 3")
            await ear.hears(lambda text: text.startswith("I will do this every monday at 9"))
            await say(client, "tasks")
            listed = await ear.hears(lambda text: text.startswith("There is one task:"))
            await say(client, "run count")
            await ear.hears(lambda text: text == "1, 2, 3.")
            await say(client, "cancel count")
            await ear.hears(lambda text: text.startswith("Cancelled: `task-"))
        tasks = (await client.get("/api/tasks")).json()["data"]
    (id,) = [task["id"] for task in tasks]
    assert f"`{id}`" in answer
    assert "count to 3 (cron `0 9 * * 1`, next " in listed
    assert reminder == "Reminder: stand up"
    assert tasks[0]["status"] == "completed"


@pytest.mark.requirement("mcp.send-message.immediate")
@pytest.mark.requirement("mcp.send-message.sender-shown")
@pytest.mark.requirement("mcp.list-tasks.main-sees-all")
@pytest.mark.requirement("mcp.list-tasks.others-see-own")
@pytest.mark.requirement("mcp.register-group.jid-from-available")
async def test_a_foreign_agent_uses_every_tool(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        host = await stack.enter_async_context(running(tmp_path / "home"))
        client = await stack.enter_async_context(host.client())
        main = await stack.enter_async_context(tools(host, "main", tmp_path))

        # Before the turn that is open has ended.
        ear = await stack.enter_async_context(listening(client, "web:main"))
        await say(client, "work slowly for 600 seconds")
        await call(main, "send_message", text="half done", sender="Researcher")
        await ear.hears(lambda text: text == "Researcher: half done")
        await say(client, "/stop")

        # A chat that nobody has seen becomes a group and is written to.
        kin_group = {"jid": "web:kin", "name": "Kin", "folder": "kin", "trigger": "@Andy"}
        await call(main, "register_group", **kin_group, requires_trigger=False)
        kin_ear = await stack.enter_async_context(listening(client, "web:kin"))
        await call(main, "send_message", text="welcome", target_jid="web:kin")
        await kin_ear.hears(lambda text: text == "welcome")

        # Each sees its own tasks, main sees all; nobody else's can be touched.
        kin = await stack.enter_async_context(tools(host, "kin", tmp_path))
        own = (await call(main, "schedule_task", prompt="mine", **FAR_AWAY))["task_id"]
        theirs = (await call(kin, "schedule_task", prompt="count to 4", **FAR_AWAY))["task_id"]
        assert await ids(kin) == [theirs]
        assert "has no task" in await refusal(kin, "cancel_task", task_id=own)
        assert "own chat only" in await refusal(
            kin, "send_message", text="a", target_jid="web:main"
        )
        assert "only the main group" in await refusal(kin, "register_group", **kin_group)
        assert "only the main group" in await refusal(kin, "refresh_groups")
        past = {**FAR_AWAY, "schedule_value": "2001-01-01T09:00:00"}
        assert "in the past" in await refusal(kin, "schedule_task", prompt="late", **past)

        # What changes a task.
        assert (await call(kin, "pause_task", task_id=theirs))["status"] == "paused"
        assert (await call(kin, "resume_task", task_id=theirs))["status"] == "active"
        await call(main, "update_task", task_id=theirs, prompt="count to 2")
        assert sorted(await ids(main)) == sorted([own, theirs])
        await call(kin, "run_task", task_id=theirs)
        await kin_ear.hears(lambda text: text == "1, 2.")
        await call(main, "cancel_task", task_id=theirs)
        await call(main, "refresh_groups")
        assert await ids(main) == [own]


@pytest.mark.requirement("runner.agent.mcp-server-nanoclaw")
@pytest.mark.parametrize("sandbox", ["bubblewrap", "process"])
async def test_a_program_in_a_box_has_the_tools_by_mcp(tmp_path: Path, sandbox: str) -> None:
    home = tmp_path / "home"
    settings(
        home,
        f"[groups.kin.agent]\nkind = 'command'\nsandbox = '{sandbox}'\n"
        f"command = [{interpreter()!r}, '/workspace/group/toolsmith.py']\n",
    )
    (home / "groups" / "kin").mkdir(parents=True)
    shutil.copy(TOOLSMITH, home / "groups" / "kin" / "toolsmith.py")
    async with running(home) as host, host.client() as client:
        assert (await client.post("/api/groups", json=KIN)).status_code == 201
        async with listening(client, "web:kin") as ear:
            await say(client, "go", "web:kin")
            await ear.hears(lambda text: text == "half done")
            told = json.loads(await ear.hears(lambda text: text.startswith("[")))
        (task,) = (await client.get("/api/tasks")).json()["data"]
    assert told == ["nanoclaw", False, task["id"], True]
    assert (task["group"], task["prompt"]) == ("kin", "water the plants")
