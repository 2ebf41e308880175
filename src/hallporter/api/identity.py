"""Who asks: the bearer at the door of `/api`, and what is hidden from them."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Security
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.requests import Request

from hallporter.api.errors import NOTHING_HERE, refusal
from hallporter.domain.errors import HallporterError, NotFoundError, UnauthorizedError
from hallporter.domain.token import OPERATOR, Caller, Role, digest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from hallporter.switchboard.tokens import Tokens

_GUARDED = "/api/"
_FOR_EVERYONE = "/api/chats/"  # the rest of /api is the operator's


class Doorkeeper:
    """Knows a caller by their bearer: a token of ours, or the home's admin token."""

    def __init__(self, *, tokens: Tokens, admin_digest: str) -> None:
        self._tokens = tokens
        self._admin_digest = admin_digest

    async def recognise(self, authorization: str) -> Caller:
        """Raises `UnauthorizedError`."""
        scheme, _, secret = authorization.partition(" ")
        secret = secret.strip()
        if scheme.casefold() != "bearer" or not secret:
            message = "a token is needed: send 'Authorization: Bearer hp_…'"
            raise UnauthorizedError(message)
        if hmac.compare_digest(digest(secret), self._admin_digest):
            return Caller(subject=OPERATOR, role=Role.STUDIO_OPERATOR)
        caller = await self._tokens.caller(secret)
        if caller is None:
            raise UnauthorizedError("this token is unknown, expired or revoked")
        return caller


class Door:
    """Stands before the routes, so that a consumer sees the same nothing at an operator's
    address as at an unknown one, whatever the method or the body."""

    def __init__(self, app: ASGIApp, *, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_GUARDED):
            try:
                caller = await self._admit(scope)
            except HallporterError as error:
                await refusal(error)(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    async def _admit(self, scope: Scope) -> Caller:
        caller = await self._doorkeeper.recognise(Headers(scope=scope).get("authorization", ""))
        if not caller.is_operator and not scope["path"].startswith(_FOR_EVERYONE):
            raise NotFoundError(NOTHING_HERE)
        return caller


# `async` though nothing is awaited: FastAPI would send a plain function to a thread, every time.
async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


Asks = Annotated[Caller, Depends(_caller)]
"""The caller, as the door has recognised them."""

bearer = Security(
    HTTPBearer(auto_error=False, description="A token of ours: `hallporter tokens create`.")
)
"""For the description of the API only: the door itself has checked."""
