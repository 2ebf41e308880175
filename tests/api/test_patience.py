from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from hallporter.api.patience import Patience

LIMIT = 5.0  # seconds for each wait of ours
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n"


class Hasty(Patience):
    patience = 0.3  # seconds


@dataclass
class Slow:
    """An app that begins to answer at once and finishes when it is told to."""

    may_finish: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"be", "more_body": True})
        await self.may_finish.wait()
        await send({"type": "http.response.body", "body": b"gun"})


@dataclass(frozen=True)
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def until(self, words: bytes) -> None:
        async with asyncio.timeout(LIMIT):
            await self.reader.readuntil(words)

    async def ends(self) -> None:
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(LIMIT):
                assert await self.reader.read() == b""


@dataclass
class House:
    app: Slow
    port: int
    made: list[Connection] = field(default_factory=list)

    async def connect(self) -> Connection:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port))
        self.made.append(connection)
        return connection


@pytest.fixture
async def house() -> AsyncIterator[House]:
    app = Slow()
    # Kept for longer than we wait: what ends a connection here is never uvicorn's own limit.
    config = uvicorn.Config(
        app, http=Hasty, port=0, log_config=None, lifespan="off", timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server._serve())
        async with asyncio.timeout(LIMIT):
            while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
                await asyncio.sleep(0.01)
        opened = House(app, server.servers[0].sockets[0].getsockname()[1])
        try:
            yield opened
        finally:
            app.may_finish.set()
            for connection in opened.made:
                connection.writer.close()
            server.should_exit = True
            await serving


@pytest.mark.parametrize(
    "words",
    [b"", b"G", HEAD, b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf"],
    ids=["nothing", "a byte", "half a head", "half a body"],
)
async def test_a_connection_without_a_whole_request_is_closed(house: House, words: bytes) -> None:
    connection = await house.connect()
    connection.writer.write(words)

    await connection.ends()


async def test_a_second_request_must_come_whole_too(house: House) -> None:
    house.app.may_finish.set()
    connection = await house.connect()
    connection.writer.write(HEAD + b"\r\n")
    await connection.until(b"begun")

    connection.writer.write(HEAD)

    await connection.ends()


async def test_an_answer_may_take_longer(house: House) -> None:
    asked = await house.connect()
    asked.writer.write(HEAD + b"\r\n")
    await asked.until(b"be")
    silent = await house.connect()
    await silent.ends()  # so whoever was there before has been waited for even longer

    house.app.may_finish.set()

    await asked.until(b"gun")
