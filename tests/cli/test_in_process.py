"""The app in this process answers as one over HTTP does, and while it is still at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hallporter.cli.in_process import InProcess


class Shop:
    """An app with a slow counter."""

    def __init__(self) -> None:
        self.next = asyncio.Event()
        self.is_left = asyncio.Event()

    async def count(self, _request: Request) -> Response:
        async def numbers() -> AsyncIterator[str]:
            try:
                yield "one\n"
                await self.next.wait()
                yield "two\n"
            finally:
                self.is_left.set()

        return StreamingResponse(numbers())

    async def echo(self, request: Request) -> Response:
        said = await request.json()
        return JSONResponse([request.method, request.url.path, dict(request.query_params), said])

    async def broken(self, _request: Request) -> Response:
        raise ValueError("sold out")

    @property
    def app(self) -> Starlette:
        routes = [
            Route("/count", self.count),
            Route("/echo/{name}", self.echo, methods=["POST"]),
            Route("/broken", self.broken),
        ]
        return Starlette(routes=routes)


async def test_a_request_goes_in_whole() -> None:
    async with asyncio.TaskGroup() as tasks:
        transport = InProcess(Shop().app, tasks)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            answer = await client.post("/echo/a%20b", json={"x": 1}, params={"q": "ü"})
    assert answer.json() == ["POST", "/echo/a b", {"q": "ü"}, {"x": 1}]


async def test_an_answer_is_read_while_it_is_being_made() -> None:
    shop = Shop()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        transport = InProcess(shop.app, tasks)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://shop") as client,
            client.stream("GET", "/count") as answer,
        ):
            lines = answer.aiter_lines()
            assert await anext(lines) == "one"
            shop.next.set()
            assert [line async for line in lines] == ["two"]


async def test_who_hangs_up_keeps_nobody_waiting() -> None:
    shop = Shop()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        transport = InProcess(shop.app, tasks)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://shop") as client,
            client.stream("GET", "/count") as answer,
        ):
            assert await anext(answer.aiter_lines()) == "one"
        await shop.is_left.wait()


async def test_what_breaks_in_the_app_is_an_error_of_the_call() -> None:
    async with asyncio.TaskGroup() as tasks:
        transport = InProcess(Shop().app, tasks)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            answer = await client.get("/broken")
            assert answer.status_code == 500

            async def silent(*_: object) -> None:
                raise ValueError("sold out")

            lost = InProcess(silent, tasks)
            with pytest.raises(httpx.ReadError, match="sold out"):
                await lost.handle_async_request(httpx.Request("GET", "http://shop/"))
