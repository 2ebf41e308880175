"""A wire between browser and host that can be cut, while both stay as they are."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Wire:
    """`url` is the host's, seen through it."""

    def __init__(self, host: str) -> None:
        self.url = ""
        self._host = urlsplit(host)
        self._ends: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Every connection of now; the next ones go through again."""
        for end in self._ends:
            end.transport.abort()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host.hostname, self._host.port)
        ends = {writer, far_writer}
        self._ends |= ends
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pass_on(reader, far_writer))
                tasks.create_task(_pass_on(far_reader, writer))
        finally:
            self._ends -= ends


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def wired(host: str) -> AsyncIterator[Wire]:
    wire = Wire(host)
    server = await asyncio.start_server(wire.connect, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire.url = f"http://127.0.0.1:{port}"
    async with server:
        yield wire
        wire.cut()
