"""A person in a chat: says something over HTTP, and sees the answer in the stream of events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bench.host import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One message and its answer, in nanoseconds of the machine's clock.

    `accepted` is taken by the host before it stores the message, so what is measured from there
    holds the commit too.
    """

    posted: int
    accepted: int
    seen: int  # by the agent: its stdin complete, or the file in its tray
    block: int  # the agent began to write its answer
    delivered: int  # the answer's event was here

    @property
    def to_agent(self) -> float:
        """Milliseconds."""
        return (self.seen - self.accepted) / 1e6

    @property
    def to_person(self) -> float:
        """Milliseconds."""
        return (self.delivered - self.block) / 1e6


@dataclass(frozen=True, slots=True)
class _Heard:
    at: int
    message: dict[str, Any]


class Talk:
    """One chat, followed."""

    def __init__(self, client: httpx.AsyncClient, chat: str) -> None:
        self._client = client
        self._path = f"/api/chats/{chat}"
        self._heard: asyncio.Queue[_Heard] = asyncio.Queue()
        self._is_open = asyncio.Event()
        self._answered: set[str] = set()  # ids of what was said
        self._turned = asyncio.Event()

    async def follow(self, after: str | None) -> None:
        """Until cancelled."""
        query = {} if after is None else {"after": after}
        async with self._client.stream("GET", f"{self._path}/events", params=query) as answer:
            answer.raise_for_status()
            self._is_open.set()
            event = ""
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    event = value
                elif name == "data" and event == "message":
                    self._heard.put_nowait(_Heard(time.time_ns(), json.loads(value)))
                elif name == "data" and event == "turn":
                    self._note(json.loads(value))

    async def opened(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._is_open.wait()

    async def say(self, text: str) -> str:
        """The id of the message, once it is durable."""
        answer = await self._client.post(f"{self._path}/messages", json={"text": text})
        answer.raise_for_status()
        id_: str = answer.json()["id"]
        return id_

    async def answered(self, *ids: str) -> None:
        """Until turns have ended that answered all of these."""
        async with asyncio.timeout(PATIENCE):
            while not self._answered.issuperset(ids):
                self._turned.clear()
                await self._turned.wait()

    async def hear(self) -> _Heard:
        """The next message of the chat, whoever wrote it."""
        async with asyncio.timeout(PATIENCE):
            return await self._heard.get()

    async def hear_answer(self) -> _Heard:
        """The next message of the agent's."""
        while not (heard := await self.hear()).message["is_bot"]:
            pass
        return heard

    async def ask(self, text: str) -> Trip:
        """Say it, and wait for its answer."""
        posted = time.time_ns()
        await self.say(text)
        own = await self.hear()
        answer = await self.hear_answer()
        stamps = json.loads(answer.message["text"])
        return Trip(
            posted=posted,
            accepted=_nanoseconds(own.message["at"]),
            seen=stamps["seen"],
            block=stamps["block"],
            delivered=answer.at,
        )

    def _note(self, turn: dict[str, Any]) -> None:
        if turn["state"] == "answered":
            self._answered.update(turn["covers"])
            self._turned.set()


@contextlib.asynccontextmanager
async def talking(
    client: httpx.AsyncClient, *chats: str, after: str | None = None
) -> AsyncIterator[list[Talk]]:
    """The chats, followed from here on, or from behind a message."""
    talks = [Talk(client, chat) for chat in chats]
    async with asyncio.TaskGroup() as tasks:
        followers = [tasks.create_task(talk.follow(after)) for talk in talks]
        for talk in talks:
            await talk.opened()
        yield talks
        for follower in followers:
            follower.cancel()


def _nanoseconds(at: str) -> int:
    since = datetime.fromisoformat(at) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
