"""The life of a host: it starts or says why not, and it ends in good order."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.journeys.host import COMMAND, PATIENCE, Host, running, settings


async def up(home: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """A start that is expected to fail: its exit code and all that it said."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--home",
        str(home),
        "up",
        *(arguments or ("--port", "0")),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **environment},
    )
    async with asyncio.timeout(PATIENCE):
        out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def say(client: httpx.AsyncClient, text: str, chat: str = "web:main") -> str:
    answer = await client.post(f"/api/chats/{chat}/messages", json={"text": text})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def state(client: httpx.AsyncClient, message: str) -> str:
    return str((await client.get(f"/api/messages/{message}/fate")).json()["state"])


async def reaches(client: httpx.AsyncClient, message: str, *states: str) -> str:
    async with asyncio.timeout(PATIENCE):
        while (now := await state(client, message)) not in states:  # noqa: ASYNC110  no stream here
            await asyncio.sleep(0.05)
    return now


async def logged(host: Host, event: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while event not in {line["event"] for line in host.lines}:  # noqa: ASYNC110  it only logs
            await asyncio.sleep(0.02)


@pytest.mark.requirement("host.interface.chat-messages")
async def test_a_new_home_gets_a_main_group_that_answers(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as host, host.client() as client:
        groups = (await client.get("/api/groups")).json()["data"]
        message = await say(client, "hello")
        await reaches(client, message, "answered")

    assert [(group["folder"], group["chat"], group["is_main"]) for group in groups] == [
        ("main", "web:main", True)
    ]


async def test_sigterm_ends_a_host_with_an_open_stream_and_exits_with_zero(
    tmp_path: Path,
) -> None:
    async with (
        running(tmp_path / "home") as host,
        host.client() as client,
        client.stream("GET", "/api/chats/web:main/events", timeout=PATIENCE) as stream,
    ):
        lines = stream.aiter_lines()
        await anext(lines)
        assert await host.end() == 0
        assert [line async for line in lines if line.startswith("event:")] == []


async def test_a_turn_cut_short_by_sigterm_is_answered_once_after_the_next_start(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with running(home) as host, host.client() as client:
        message = await say(client, "work slowly for 6 seconds")
        await logged(host, "agent.spawned")
        assert await host.end() == 0

    async with running(home) as host, host.client() as client:
        await reaches(client, message, "answered")
        fate = (await client.get(f"/api/messages/{message}/fate")).json()

    assert len(fate["replies"]) == 1
    assert any("the host ended" in step["what"] for step in fate["steps"])


async def test_a_second_sigterm_ends_the_host_at_once(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as host, host.client() as client:
        await say(client, "work slowly for 60 seconds")
        await logged(host, "agent.spawned")
        host.process.send_signal(signal.SIGTERM)
        await logged(host, "ending")
        host.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await host.process.wait() == 1
        assert not any(line["event"] == "ended" for line in host.lines)


async def test_a_second_host_is_told_who_holds_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home) as host:
        code, said = await up(home)

        assert code == 1
        assert f"process {host.process.pid}" in said
        assert host.url in said
        assert "Traceback" not in said


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        code, said = await up(tmp_path / "home", "--port", str(port))

    assert code == 1
    assert str(port) in said
    assert "--port" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[host\nport = 1", "line 1"),
        ("[host]\nport = 'many'", "host.port"),
        ("[agent]\nkind = 'robot'", "robot"),
        ("[agent]\nsandbox = 'tent'", "tent"),
        ("[store]\nurl = 'mysql://x'", "store.url"),
    ],
)
async def test_settings_that_cannot_be_are_refused_in_words(
    tmp_path: Path, text: str, told: str
) -> None:
    settings(tmp_path / "home", text)

    code, said = await up(tmp_path / "home")

    assert code == 1
    assert told in said
    assert "hallporter.toml" in said
    assert "Traceback" not in said


async def test_an_unknown_key_is_a_warning_with_the_nearest_known_one(tmp_path: Path) -> None:
    settings(tmp_path / "home", '[host]\nassistent_name = "Bea"\n')

    async with running(tmp_path / "home") as host:
        said = host.tail()

    assert "assistent_name" in said
    assert "assistant_name" in said


async def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")

    code, said = await up(tmp_path / "home")

    assert code == 1
    assert "is not a folder" in said
    assert "Traceback" not in said


async def test_a_corrupt_database_is_refused_and_kept_byte_for_byte(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home) as host, host.client() as client:
        await reaches(client, await say(client, "hello"), "answered")
    database = home / "hallporter.db"
    broken = bytearray(database.read_bytes())
    broken[4096 : 4096 * 6] = os.urandom(4096 * 5)
    database.write_bytes(broken)

    code, said = await up(home)

    assert code == 1
    assert "cannot be used" in said
    assert "Traceback" not in said
    assert database.read_bytes() == bytes(broken)


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home):
        pass
    with sqlite3.connect(home / "hallporter.db") as connection:
        connection.execute("INSERT INTO schema_version VALUES (9999, 'later', 'x', 'y')")
    connection.close()

    code, said = await up(home)

    assert code == 1
    assert "newer Hallporter" in said


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ('kind = "command"\ncommand = ["/does/not/exist"]', "/does/not/exist"),
        ('kind = "command"\ncommand = ["/usr/lib/os-release"]', "is not executable"),
        ('kind = "command"', "has no command"),
        ('kind = "adk"', "not part of this version"),
        ('mounts = ["/srv"]', "policy/mounts.json, the allow-list of extra mounts, is missing"),
    ],
)
async def test_an_agent_that_cannot_be_started_is_told_in_the_chat(
    tmp_path: Path, agent: str, told: str
) -> None:
    settings(tmp_path / "home", f"[agent]\n{agent}\n")

    async with running(tmp_path / "home") as host, host.client() as client:
        message = await say(client, "hello")
        await reaches(client, message, "failed")
        page = (await client.get("/api/chats/web:main/messages")).json()["messages"]
        failures = (await client.get("/api/status")).json()["data"]["failures"]

    assert told in page[-1]["text"]
    assert page[-1]["is_bot"]
    assert len(failures) == 1


async def test_stop_acts_while_the_agent_works_and_the_next_message_is_answered(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "home") as host, host.client() as client:
        slow = await say(client, "work slowly for 60 seconds")
        await logged(host, "agent.spawned")
        await say(client, "/stop")
        await reaches(client, slow, "stopped")
        await logged(host, "agent.exited")
        after = await say(client, "hello")
        assert await reaches(client, after, "answered") == "answered"


async def test_a_host_without_a_sandbox_says_that_it_is_not_ready(tmp_path: Path) -> None:
    settings(tmp_path / "home", '[agent]\nsandbox = "docker"\n')
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("--home", str(tmp_path / "home"), "up", "--port", "0"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        said = [line async for line in _until(process.stderr, b'"not_ready"')]
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0

    assert b"There is no sandbox 'docker'" in said[-1]
    assert not any(b'"ready"' in line for line in said)


async def _until(stream: asyncio.StreamReader, word: bytes) -> AsyncIterator[bytes]:
    async for line in stream:
        yield line
        if word in line:
            return


@pytest.mark.rule("R7")
async def test_what_an_earlier_host_left_running_is_ended_before_the_first_turn(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with running(home):
        pass
    label = (home / "run" / "installation").read_text().strip()
    stray = await asyncio.create_subprocess_exec(
        "/bin/sleep", "600", env={"HALLPORTER_BOX": f"{label}/earlier/box"}
    )

    async with running(home):
        async with asyncio.timeout(PATIENCE):
            assert await stray.wait() == -signal.SIGKILL


async def test_an_agent_that_ignores_close_is_sent_sigterm_when_the_host_ends(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    folder = home / "groups" / "main"
    folder.mkdir(parents=True)
    (folder / "agent.sh").write_text(DEAF)
    settings(
        home, '[agent]\nkind = "command"\ncommand = ["/bin/sh", "/workspace/group/agent.sh"]\n'
    )
    async with running(home) as host, host.client() as client:
        await reaches(client, await say(client, "hello"), "answered")
        assert await host.end() == 0

    assert (folder / "terminated").exists()


DEAF = """
trap 'touch /workspace/group/terminated; exit 0' TERM
cat >/dev/null
echo ---NANOCLAW_OUTPUT_START---
echo '{"status": "success", "result": "hello"}'
echo ---NANOCLAW_OUTPUT_END---
while :; do sleep 0.1; done
"""
