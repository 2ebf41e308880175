from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import socket
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, PATIENCE, Done, hallporter
from tests.journeys.host import Host, running

PROCESS = {"HALLPORTER_AGENT__SANDBOX": "process"}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with running(tmp_path / "home", PROCESS) as started:
        yield started


async def test_one_question_prints_its_answer(host: Host) -> None:
    done = await hallporter(host.home, "chat", "--once", "echo good evening", "--sender", "Bob")
    assert (done.code, done.out) == (0, "good evening\n"), done.err


async def test_all_replies_of_the_turn_are_printed(host: Host) -> None:
    done = await hallporter(host.home, "chat", "--once", "answer in 2 parts")
    assert done.code == 0
    assert len(done.out.splitlines()) == 2


async def test_silence_is_told_and_is_no_failure(host: Host) -> None:
    done = await hallporter(host.home, "chat", "--once", "say nothing")
    assert (done.code, done.out, done.err) == (0, "", "the agent chose to say nothing\n")


async def test_a_slash_line_prints_what_the_host_says(host: Host) -> None:
    done = await hallporter(host.home, "chat", "--once", "/whoami", "--sender", "Bob")
    assert done.code == 0
    assert done.out.startswith("You are **Bob**.")


async def test_a_failure_is_told_with_its_reason_while_it_is_tried_again(host: Host) -> None:
    done = await hallporter(host.home, "chat", "--once", "fail", "--timeout", "3")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("no answer yet (")
    await hallporter(host.home, "chat", "--once", "/stop")


async def test_an_answer_of_the_second_attempt_is_an_answer(host: Host) -> None:
    done = await hallporter(host.home, "chat", "--once", "fail once")
    assert done.code == 0
    assert done.out


async def test_no_answer_in_time_is_a_failure_that_says_where_to_look(host: Host) -> None:
    done = await hallporter(
        host.home, "chat", "--once", "work slowly for 60 seconds", "--timeout", "0.5"
    )
    (id,) = re.findall(r"`hallporter explain (\w+)`", done.err)
    told = await hallporter(host.home, "explain", id)
    assert (done.code, done.out) == (1, "")
    assert told.code == 0
    assert f"{id} in web:main: " in told.out
    assert "woke the chat" in told.out


async def test_a_message_without_the_trigger_is_not_waited_for(host: Host) -> None:
    family = ("web:family", "--name", "Family", "--folder", "family")
    await hallporter(host.home, "groups", "add", *family)
    done = await hallporter(host.home, "chat", "--chat", "web:family", "--once", "hello")
    assert done.code == 1
    assert "waits for a trigger" in done.err


async def test_lines_that_are_piped_in_are_messages(host: Host) -> None:
    done = await hallporter(host.home, "chat", stdin="echo one\n\n/whoami\necho two")
    assert done.code == 0, done.err
    assert {"one", "two"} <= set(done.out.splitlines())
    assert "You are **operator**." in done.out


async def test_an_unknown_chat_is_refused(host: Host) -> None:
    for arguments in (("--once", "hello"), ()):
        done = await hallporter(host.home, "chat", "--chat", "web:nowhere", *arguments)
        assert done.code == 1
        assert done.err == "hallporter: no chat 'web:nowhere' is registered here\n"


async def test_status_and_explain_tell_of_a_running_host(host: Host) -> None:
    await hallporter(host.home, "chat", "--once", "hello")
    status = await hallporter(host.home, "status")
    data = (await hallporter(host.home, "status", "--json")).json
    assert f"runs at {host.url}" in status.out
    assert data["is_ready"] is True
    assert data["messages"] == {}


async def test_an_answer_is_waited_for_across_a_restart_of_the_host(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    async with asyncio.TaskGroup() as tasks:
        async with running(home, PROCESS, "--port", port) as first:
            started = asyncio.Event()
            first.on_event = lambda line: started.set() if line["event"] == "turn.claimed" else None
            text = "work slowly for 2 seconds"
            asking = tasks.create_task(hallporter(home, "chat", "--once", text))
            async with asyncio.timeout(PATIENCE):
                await started.wait()
            first.kill()
            await first.process.wait()
        async with running(home, PROCESS, "--port", port):
            done: Done = await asking
    assert done.code == 0, done.err
    assert done.out


class Terminal:
    """A person's side of a pseudo-terminal."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.seen = ""
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(number, self._read)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other side has left
            self.seen += os.read(self._number, 65536).decode("utf-8", "replace")
            self._changed.set()
            return
        self.close()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._number)

    def type(self, text: str) -> None:
        os.write(self._number, text.encode())

    async def until(self, words: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while words not in self.seen:
                self._changed.clear()
                await self._changed.wait()


@pytest.mark.parametrize("farewell", ["\x04", "\x03"], ids=["Ctrl-D", "Ctrl-C"])
async def test_a_person_talks_at_a_terminal(host: Host, farewell: str) -> None:
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--home",
        str(host.home),
        "chat",
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    terminal = Terminal(ours)
    try:
        await terminal.until("> ")
        terminal.type("echo good evening\n")
        await terminal.until("Andy")
        await terminal.until("good evening\r\n")
        terminal.type(farewell)
        async with asyncio.timeout(PATIENCE):
            code = await process.wait()
    finally:
        terminal.close()
        os.close(ours)
    assert code == 0, terminal.seen
    assert "Traceback" not in terminal.seen


def _take_terminal() -> None:
    """Make stdin the terminal that Ctrl-C comes from."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
