"""Talking from the shell: one question and its answer, or a conversation."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import threading
from typing import TYPE_CHECKING, Any

from hallporter.cli import screen
from hallporter.cli.events import follow
from hallporter.cli.host import in_path
from hallporter.cli.outcome import Hopeless, Pending, Silent, outcome, replies
from hallporter.domain.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.cli.host import Client
    from hallporter.cli.outcome import Outcome
    from hallporter.cli.view import View

_LOOK_AGAIN = 3.0  # seconds: the safety net below the events
_PAGE = "200"
_STDIN = 0
_CHUNK = 65536  # bytes


async def once(client: Client, *, chat: str, text: str, sender: str | None, patience: float) -> int:
    """Say it, print the replies of the turn that covers it; the exit code."""
    id = await _say(client, chat, text, sender)
    try:
        async with asyncio.timeout(patience):
            settled = await _settled(client, chat, id)
            texts = replies(await _since(client, chat, id), settled)
    except TimeoutError:
        screen.note(_too_late(id, patience))
        return 1
    for text_ in texts:
        screen.show(text_)
    return _explain(settled)


async def converse(
    client: Client, *, chat: str, sender: str | None, patience: float, view: View
) -> int:
    """Every line of stdin is a message; at its end what is still open is waited for, unless a
    person sits there and leaves."""
    talk = _Talk(client, chat, view)
    lines = _stdin_lines()
    code = 0
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(talk.listen(), name="listen")
        await talk.is_listening.wait()
        view.greet(chat)
        view.prompt()
        while (line := await lines.get()) is not None:
            if line.strip():
                id = secrets.token_hex(8)
                talk.own.append(id)  # before it is said: its echo may be quicker than the answer
                await _say(client, chat, line, sender, id)
            view.prompt()
        if talk.own and not view.is_terminal:
            code = await talk.finish(patience)
        following.cancel()
    view.leave()
    return code


class _Talk:
    """What was said and shown so far."""

    def __init__(self, client: Client, chat: str, view: View) -> None:
        self._client = client
        self._chat = chat
        self._view = view
        self._shown: set[str] = set()
        self._news = asyncio.Event()
        self.own: list[str] = []
        self.is_listening = asyncio.Event()

    async def listen(self) -> None:
        async for event in follow(self._client, self._chat):
            match event.kind:
                case "connected":
                    self.is_listening.set()
                case "message":
                    self._show(event.data)
                case "turn" if event.data["state"] == "failed":
                    self._view.failed()
                case "typing":
                    self._view.typing(is_typing=bool(event.data["typing"]))
                case _:
                    pass
            self._news.set()

    async def finish(self, patience: float) -> int:
        """Wait until every message has its end, and show what the events did not bring."""
        code = 0
        for id in self.own:
            try:
                async with asyncio.timeout(patience):
                    settled = await _wait(self._client, id, self._news)
            except TimeoutError:
                screen.note(_too_late(id, patience))
                return 1
            for message in await _since(self._client, self._chat, id):
                self._show(message)
            code = max(code, _explain(settled))
        return code

    def _show(self, message: Mapping[str, Any]) -> None:
        if message["id"] not in self._shown and message["id"] not in self.own:
            self._shown.add(message["id"])
            self._view.show(message)


async def _say(
    client: Client, chat: str, text: str, sender: str | None, id: str | None = None
) -> str:
    body: dict[str, object] = {"text": text, "id": id or secrets.token_hex(8)}
    if sender is not None:
        body["sender"] = sender
    answer = await client.post(f"/api/chats/{in_path(chat)}/messages", body)
    return str(answer["id"])


async def _settled(client: Client, chat: str, id: str) -> Outcome:
    news = asyncio.Event()

    async def watch() -> None:
        async for _ in follow(client, chat, after=id):
            news.set()

    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch(), name="watch")
        settled = await _wait(client, id, news)
        watching.cancel()
    return settled


async def _wait(client: Client, id: str, news: asyncio.Event) -> Outcome:
    """Until the message has its end, looking whenever something happened."""
    told = ""
    while True:
        news.clear()
        try:
            found = outcome(await client.get(f"/api/messages/{in_path(id)}/fate"))
        except UnavailableError:
            found = Pending()  # the host restarts: the message is stored, so its end will come
        if not isinstance(found, Pending):
            return found
        if found.why and not told:
            told = found.why
            screen.note(told)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN):
                await news.wait()


async def _since(client: Client, chat: str, id: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    after: str | None = id
    while after:
        path = f"/api/chats/{in_path(chat)}/messages"
        page = await client.get(path, after=after, limit=_PAGE)
        found += page["messages"]
        after = page["next"]
    return found


def _explain(settled: Outcome) -> int:
    match settled:
        case Silent():
            screen.note("the agent chose to say nothing")
            return 0
        case Hopeless(why=why):
            screen.note(f"no answer: {why}")
            return 1
        case _:
            return 0


def _too_late(id: str, patience: float) -> str:
    return f"no answer within {patience:g} s: `hallporter explain {id}` tells how it stands"


def _stdin_lines() -> asyncio.Queue[str | None]:
    """The lines of stdin, None at its end. Read by a thread of its own with plain reads: it works
    for terminals, pipes and files alike, and does not hold up the end of the program."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def put(line: bytes | None) -> None:
        text = None if line is None else line.decode(sys.stdin.encoding, "replace")
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody listens
            loop.call_soon_threadsafe(lines.put_nowait, text)

    def pump() -> None:
        rest = b""
        while chunk := os.read(_STDIN, _CHUNK):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                put(line)
        if rest:
            put(rest)
        put(None)

    threading.Thread(target=pump, name="stdin", daemon=True).start()
    return lines
