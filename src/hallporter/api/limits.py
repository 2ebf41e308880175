"""How much a request may carry: counted, whatever its headers claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from hallporter.api.errors import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1024 * 1024  # bytes


class BodyLimit:
    """Refuses a body by its announced length at once, and any other as soon as it grows over."""

    def __init__(self, app: ASGIApp, *, limit: int = MAX_BODY) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self._limit:
            message = f"a body has at most {self._limit} bytes"
            await problem("TOO_LARGE", message)(scope, receive, send)
            return
        size = 0

        async def counting() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._limit:
                # The only exception that FastAPI lets through while it reads a body.
                raise HTTPException(413)
            return message

        await self._app(scope, counting, send)
