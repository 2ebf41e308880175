"""The way to the host: over HTTP when one runs, else the same app in this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import httpx

from hallporter.cli.in_process import InProcess
from hallporter.domain.errors import ConflictError, RefusedError, UnavailableError
from hallporter.home import admin_token, open_home, reachable, read_holder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from hallporter.home import Holder, Home

T = TypeVar("T")

_TIMEOUT = 30.0  # seconds for one answer
REPEAT = "repeat the command: what was begun is finished then, or at the host's next start"
LONG = 900.0  # seconds where the whole database is rewritten before the answer comes
_PATIENCE = 10.0  # seconds that another command, or a host that starts, may hold the home
_LOOK_AGAIN = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Client:
    """Calls the API as the operator; a refusal of the host's becomes our own."""

    http: httpx.AsyncClient
    is_running: bool  # False: nobody serves, the app is in this process

    async def get(self, path: str, **query: str) -> Any:  # noqa: ANN401  JSON
        return _json(await self._call("GET", path, params=query))

    async def post(
        self, path: str, body: Mapping[str, object], *, patience: float = _TIMEOUT, advice: str = ""
    ) -> Any:  # noqa: ANN401
        """`advice` is for who does not get an answer any more."""
        answer = await self._call("POST", path, advice, json=dict(body), timeout=patience)
        return _json(answer)

    async def patch(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401
        return _json(await self._call("PATCH", path, json=dict(body)))

    async def delete(
        self, path: str, *, patience: float = _TIMEOUT, advice: str = "", **query: str
    ) -> httpx.Headers:
        answer = await self._call("DELETE", path, advice, params=query, timeout=patience)
        return answer.headers

    async def lines(self, path: str, body: Mapping[str, object]) -> AsyncIterator[dict[str, Any]]:
        """An answer that is a JSON object a line, each as it comes; however long that takes."""
        waiting = httpx.Timeout(_TIMEOUT, read=None)
        try:
            async with self.http.stream("POST", path, json=dict(body), timeout=waiting) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise RefusedError(_refusal(answer))
                async for line in answer.aiter_lines():
                    told = json.loads(line)
                    if "error" in told:
                        raise RefusedError(str(told["message"]))
                    yield told
        except httpx.HTTPError as error:
            message = f"the host at {self.http.base_url} does not answer any more: {error}"
            raise UnavailableError(message) from error

    async def _call(
        self,
        method: str,
        path: str,
        advice: str = "",
        **more: Any,  # noqa: ANN401
    ) -> httpx.Response:
        try:
            answer = await self.http.request(method, path, **more)
        except httpx.HTTPError as error:
            message = f"the host at {self.http.base_url} does not answer: {error}"
            raise UnavailableError(f"{message}; {advice}" if advice else message) from error
        if answer.is_success:
            return answer
        raise RefusedError(_refusal(answer))


def _json(answer: httpx.Response) -> Any:  # noqa: ANN401
    return answer.json() if answer.content else None


def _refusal(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError):
        return f"the host answered {answer.status_code}"


def in_path(name: str) -> str:
    """A name as one step of an address."""
    return quote(name, safe=":@")


def ask(path: Path, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run one piece of work against the host of a home."""

    async def run() -> T:
        async with api(path) as client:
            return await work(client)

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def api(path: Path, *, must_run: bool = False) -> AsyncIterator[Client]:
    """The host of the home at `path`; with `must_run` only one that serves."""
    home = open_home(path)
    headers = {"Authorization": f"Bearer {admin_token(home)}"}
    async with contextlib.AsyncExitStack() as stack:
        holder = await _enter(home, stack, headers, must_run=must_run)
        yield holder


async def _enter(
    home: Home, stack: contextlib.AsyncExitStack, headers: Mapping[str, str], *, must_run: bool
) -> Client:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while True:
        holder = read_holder(home)
        if holder is not None and holder.url:
            http = httpx.AsyncClient(
                base_url=reachable(holder.url),
                headers=headers,
                timeout=_TIMEOUT,
                trust_env=False,  # a proxy of the user's must not see the operator's token
            )
            return Client(await stack.enter_async_context(http), is_running=True)
        if holder is None:
            if must_run:
                message = f"no host is running for {home.path}: start it with `hallporter up`"
                raise RefusedError(message)
            try:
                return await _in_process(home, stack, headers)
            except ConflictError:
                # Someone was quicker: another command, or a host that starts.
                if loop.time() >= deadline:
                    raise
        elif loop.time() >= deadline:
            raise ConflictError(_held(home, holder))
        await asyncio.sleep(_LOOK_AGAIN)


async def _in_process(
    home: Home, stack: contextlib.AsyncExitStack, headers: Mapping[str, str]
) -> Client:
    from hallporter.service import offline

    app = await stack.enter_async_context(offline(home.path))
    calls = await stack.enter_async_context(asyncio.TaskGroup())
    http = httpx.AsyncClient(
        transport=InProcess(app, calls), base_url="http://in-process", headers=headers
    )
    return Client(await stack.enter_async_context(http), is_running=False)


def _held(home: Home, holder: Holder) -> str:
    return (
        f"process {holder.pid} holds the home {home.path} and does not listen yet: wait for it,"
        " or stop it"
    )
