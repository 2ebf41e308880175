"""The app in this process, called as if over HTTP; an answer can be read while it is being made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Message, Scope


class InProcess(httpx.AsyncBaseTransport):
    """httpx has one of its own, which collects the whole answer first. `tasks` is the parent of
    each call."""

    def __init__(self, app: ASGIApp, tasks: asyncio.TaskGroup) -> None:
        self._app = app
        self._tasks = tasks

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        call = _Call(await request.aread())
        self._tasks.create_task(call.run(self._app, _scope(request)), name=f"call:{request.url}")
        start = await call.next()
        return httpx.Response(
            start["status"],
            headers=start["headers"],
            stream=_Answer(call),
        )


class _Call:
    """One request, and the answer as far as it is made."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._said: asyncio.Queue[Message | Exception] = asyncio.Queue(maxsize=1)
        self._is_over = asyncio.Event()

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._receive, self._said.put)
        except Exception as error:  # noqa: BLE001  whoever asked hears of it
            await self._said.put(error)

    async def next(self) -> Message:
        said = await self._said.get()
        if isinstance(said, Exception):
            raise httpx.ReadError(f"{type(said).__name__}: {said}") from said
        return said

    def hang_up(self) -> None:
        self._is_over.set()
        while not self._said.empty():  # nobody must wait for a reader who is gone
            self._said.get_nowait()

    async def _receive(self) -> Message:
        if self._body is None:
            await self._is_over.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Answer(httpx.AsyncByteStream):
    def __init__(self, call: _Call) -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_more = True
        while is_more:
            said = await self._call.next()
            yield said.get("body", b"")
            is_more = said.get("more_body", False)

    async def aclose(self) -> None:
        self._call.hang_up()


def _scope(request: httpx.Request) -> Scope:
    path, _, query = request.url.raw_path.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": path,
        "query_string": query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }
