from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hallporter_runner.tools import TOOLS
from tests.runner.host import Host

NOON = {"prompt": "lunch", "schedule_type": "cron", "schedule_value": "0 12 * * *"}
MODES = ("auto", "legacy")  # how clients of today and of yesterday begin a conversation


@asynccontextmanager
async def connect(
    workspace: Path, *, mode: str = "auto", **variables: str
) -> AsyncIterator[Client]:
    """A real client, and the server as a program of its own."""
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hallporter_runner", "mcp"],
        env={"HALLPORTER_WORKSPACE": str(workspace), **measured, **variables},
    )
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


def words(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@pytest.mark.requirement("runner.agent.mcp-server-nanoclaw")
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_finds_the_tools_and_uses_one(tmp_path: Path, mode: str) -> None:
    with Host(tmp_path) as host:
        async with connect(tmp_path, mode=mode) as client:
            assert client.server_info is not None
            assert client.server_info.name == "nanoclaw"
            listed = await client.list_tools()
            assert {tool.name: tool.input_schema for tool in listed.tools} == {
                name: tool.schema() for name, tool in TOOLS.items()
            }
            sent = await client.call_tool("send_message", {"text": "half done"})
    assert (sent.is_error, words(sent)) == (False, "Sent.")
    assert host.requests == [{"type": "message", "text": "half done"}]


@pytest.mark.requirement("mcp.schedule-task.returns-id")
async def test_a_task_is_scheduled_listed_and_cancelled(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        async with connect(tmp_path) as client:
            scheduled = await client.call_tool("schedule_task", NOON)
            task_id = scheduled.structured_content["task_id"]
            task = {"id": task_id, **NOON, "status": "active", "next_run": None}
            host.write("current_tasks.json", [task])
            listed = await client.call_tool("list_tasks", {})
            cancelled = await client.call_tool("cancel_task", {"task_id": task_id})
    assert listed.structured_content == {"tasks": [task]}
    assert task_id in words(listed)
    assert words(cancelled) == f"{task_id} is cancelled."
    assert [request["type"] for request in host.requests] == ["schedule_task", "cancel_task"]


@pytest.mark.requirement("mcp.send-message.several-per-turn")
async def test_several_messages_go_out_one_after_the_other(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        async with connect(tmp_path) as client:
            for number in range(5):
                await client.call_tool("send_message", {"text": f"part {number}"})
    assert [request["text"] for request in host.requests] == [f"part {n}" for n in range(5)]


async def test_what_the_host_refuses_is_a_tool_error_in_its_words(tmp_path: Path) -> None:
    def refuse(_: Mapping[str, Any]) -> Mapping[str, object]:
        return {"ok": False, "error": "there is no task task-1 that this group may change"}

    with Host(tmp_path, refuse):
        async with connect(tmp_path) as client:
            result = await client.call_tool("pause_task", {"task_id": "task-1"})
    assert result.is_error
    assert words(result) == "there is no task task-1 that this group may change"


async def test_a_call_that_makes_no_sense_never_reaches_the_host(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        async with connect(tmp_path) as client:
            asked = {**NOON, "schedule_value": "at noon"}
            result = await client.call_tool("schedule_task", asked)
    assert result.is_error
    assert "is no cron expression" in words(result)
    assert host.requests == []


@pytest.mark.requirement("mcp.register-group.main-only")
@pytest.mark.parametrize(("is_main", "is_refused"), [("0", True), ("1", False)])
async def test_whoever_starts_it_says_whether_it_is_main(
    tmp_path: Path, is_main: str, is_refused: bool
) -> None:
    group = {"jid": "web:b", "name": "B", "folder": "b", "trigger": "@Andy"}
    with Host(tmp_path) as host:
        async with connect(tmp_path, HALLPORTER_IS_MAIN=is_main) as client:
            result = await client.call_tool("register_group", group)
    assert result.is_error == is_refused
    assert (host.requests == []) == is_refused


def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(name='mcp')", encoding="ascii")
    run = subprocess.run(
        [sys.executable, "-m", "hallporter_runner", "mcp"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "the MCP server needs the package mcp: pip install 'hallporter[agents]'\n"
