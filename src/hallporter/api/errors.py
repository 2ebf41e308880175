"""One shape for everything that goes wrong at the door, and which status it has."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import structlog
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from hallporter.domain.errors import HallporterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger(__name__)

STATUS: Mapping[str, int] = {
    "INVALID_REQUEST": 400,
    "INVALID_SETTINGS": 400,
    "CORRUPT_INPUT": 400,
    "AGENT_REFUSED": 400,
    "MESSAGE_REFUSED": 400,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "UNREGISTERED": 404,
    "METHOD_NOT_ALLOWED": 405,
    "REFUSED": 409,
    "CONFLICT": 409,
    "FENCED": 409,
    "TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "ERROR": 500,
    "INTERNAL_ERROR": 500,
    "UNAVAILABLE": 503,
    "NOT_READY": 503,
    "AGENT_FAILED": 503,
    "CHANNEL_DOWN": 503,
    "STORE_UNAVAILABLE": 503,
    "DISK_ERROR": 503,
    "STORE_REFUSED": 503,
}

NOTHING_HERE = "there is nothing at this address"

# What Starlette and FastAPI raise by themselves, in our words.
_HTTP = {
    400: ("INVALID_REQUEST", "the body is not JSON that can be read"),
    404: ("NOT_FOUND", NOTHING_HERE),
    405: ("METHOD_NOT_ALLOWED", "this address does not take this method"),
    413: ("TOO_LARGE", "the body is too large"),
}

_SHOWN = 80  # characters of a refused value that are told back


class Detail(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str
    value: Any = None


class Problem(BaseModel):
    """Every error, whatever it is about."""

    success: bool = Field(False, description="Always false.")
    error: str = Field(description="The code: stable, for programs.", examples=["NOT_FOUND"])
    message: str = Field(description="One sentence for people: what is wrong and what to do.")
    details: list[Detail] | None = Field(None, description="With 400: field by field.")


def problem(
    code: str,
    message: str,
    *,
    details: Sequence[Detail] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The answer for an error."""
    body = Problem(success=False, error=code, message=message, details=list(details) or None)
    content = body.model_dump(exclude_none=True)
    return JSONResponse(content, status_code=STATUS[code], headers=headers)


def refusal(error: HallporterError) -> JSONResponse:
    """The answer for an error of ours."""
    details = []
    if STATUS[error.code] == STATUS["INVALID_REQUEST"] and "field" in error.facts:
        value = str(error.facts.get("value", ""))[:_SHOWN]
        field = str(error.facts["field"])
        details.append(Detail(field=field, message=error.message, value=value))
    headers = {"WWW-Authenticate": "Bearer"} if error.code == "UNAUTHORIZED" else None
    return problem(error.code, error.message, details=details, headers=headers)


def install(app: FastAPI) -> None:
    """Make every error of the app's routes speak this shape."""

    @app.exception_handler(HallporterError)
    async def ours(_request: Request, error: HallporterError) -> JSONResponse:
        return refusal(error)

    @app.exception_handler(HTTPException)
    async def http(_request: Request, error: HTTPException) -> JSONResponse:
        code, message = _HTTP[error.status_code]
        return problem(code, message, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def fields(request: Request, error: RequestValidationError) -> JSONResponse:
        details = [_detail(one) for one in error.errors()]
        message = "; ".join(f"{one.field}: {one.message}" for one in details)
        kind = request.headers.get("content-type", "")
        if "body" in {one.field for one in details} and "json" not in kind:
            message = "send a JSON object with the header 'Content-Type: application/json'"
        return problem("INVALID_REQUEST", message, details=details)


def _detail(error: Mapping[str, Any]) -> Detail:
    if error["type"] == "json_invalid":
        why = f"not JSON: {error['ctx']['error']} at character {error['loc'][-1]}"
        return Detail(field="body", message=why)
    # ("body", "text") is the field `text`; ("body",) is the body itself.
    place = [str(step) for step in error["loc"]]
    field = ".".join(place[1:] or place)
    # The value is not told back: it may be large, deep, or a secret in the wrong field.
    return Detail(field=field, message=str(error["msg"]))


class Border:
    """The request border: what nobody expected is logged under an id, and only the id is told."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            case = secrets.token_hex(6)
            log.exception("request.failed", case=case, path=scope["path"], method=scope["method"])
            if has_begun:
                raise  # half an answer is out: the server must cut the connection
            message = f"something went wrong here; the host's log has it as case {case}"
            await problem("INTERNAL_ERROR", message)(scope, receive, send)
