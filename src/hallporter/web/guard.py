"""The ground under every page: who looks, where a form comes from, what the browser may do."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from hallporter.domain.errors import (
    ForbiddenError,
    HallporterError,
    InvalidRequestError,
    UnauthorizedError,
    UnavailableError,
)
from hallporter.domain.visit import IDLE_LASTS
from hallporter.switchboard.sessions import Browser
from hallporter.web.templates import fill

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from hallporter.domain.visit import Session
    from hallporter.switchboard.sessions import LoggedIn, Sessions

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_STATUS = {
    "INVALID_REQUEST": 400,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "RATE_LIMITED": 429,
}
_SESSION = "hp_session"
_VISIT = "hp_visit"  # of someone who is not logged in yet: what their log-in form is bound to
_KEPT = int(IDLE_LASTS.total_seconds())  # from each use on; the server's own limit counts
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Someone who is logged in; `csrf` goes into their forms and comes back with each."""

    session: Session
    secret: str
    csrf: str


def guarded(
    sessions: Sessions, view: Callable[[Request, Visitor], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """A page for those who are logged in. What changes something must carry the CSRF token."""

    async def endpoint(request: Request) -> Response:
        secret = request.cookies.get(_cookie(request, _SESSION), "")
        session = await sessions.find(secret)
        visitor = Visitor(session=session, secret=secret, csrf=csrf_of(secret))
        if request.method == "POST":
            await check_form(request, visitor.csrf)
        response = await view(request, visitor)
        if "set-cookie" not in response.headers:  # else they have just logged out
            _set_cookie(request, response, _SESSION, secret, _KEPT)
        return response

    return guarding(endpoint)


def guarding(
    view: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Every answer of a page has the headers, also a refusal."""

    async def endpoint(request: Request) -> Response:
        try:
            response = await view(request)
        except HallporterError as error:
            response = _refusal(request, error)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return endpoint


async def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form, the first value of each."""
    if not request.headers.get("content-type", "").startswith(_FORM):
        raise InvalidRequestError("send a form", field="body")
    try:
        text = (await request.body()).decode()
        fields = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError as error:
        raise InvalidRequestError("the form cannot be read", field="body") from error
    return {name: values[0] for name, values in fields.items()}


async def check_form(request: Request, csrf: str) -> None:
    """Raises `ForbiddenError` for what another site's page may have sent."""
    given = request.headers.get("x-csrf-token") or (await form_of(request)).get("csrf", "")
    is_ours = request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    if not is_ours or not hmac.compare_digest(given.encode(), csrf.encode()):
        raise ForbiddenError("this form is too old, or not one of ours: load the page again")


def csrf_of(secret: str) -> str:
    """Bound to the browser's secret, and of no use to learn it."""
    return hmac.digest(secret.encode(), b"csrf", "sha256").hex()


def visit_of(request: Request) -> str:
    """The secret of a browser that is not logged in; a fresh one if it has none."""
    return request.cookies.get(_cookie(request, _VISIT)) or secrets.token_urlsafe(32)


def remember_visit(request: Request, response: Response, secret: str) -> None:
    _set_cookie(request, response, _VISIT, secret, None)


def let_in(request: Request, logged_in: LoggedIn) -> Response:
    """To the page, with the cookie that opens it.

    By a page of ours that goes on by itself: a browser that was sent on from a stranger's link
    would leave a strict cookie at home.
    """
    response = HTMLResponse(fill("entered.html"))
    _set_cookie(request, response, _SESSION, logged_in.secret, _KEPT)
    return response


def let_out(request: Request) -> Response:
    """Back to the door, without the cookie."""
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(_cookie(request, _SESSION), secure=_is_tls(request), httponly=True)
    return response


def wants_page(request: Request) -> bool:
    """Whether a browser will show the answer to a person; our script asks for JSON."""
    return "text/html" in request.headers.get("accept", "")


def browser_of(request: Request) -> Browser:
    address = request.client.host if request.client else ""
    return Browser(address=address, name=request.headers.get("user-agent", ""))


def _set_cookie(
    request: Request, response: Response, name: str, value: str, max_age: int | None
) -> None:
    response.set_cookie(
        _cookie(request, name),
        value,
        max_age=max_age,
        path="/",
        httponly=True,
        samesite="strict",
        secure=_is_tls(request),
    )


def _cookie(request: Request, name: str) -> str:
    # Under TLS the browser itself sees to it that no neighbour's page can plant such a name.
    return f"__Host-{name}" if _is_tls(request) else name


def _is_tls(request: Request) -> bool:
    return request.url.scheme == "https"


def _refusal(request: Request, error: HallporterError) -> Response:
    status = _STATUS.get(error.code, 503 if isinstance(error, UnavailableError) else 409)
    headers = {}
    if "retry_after" in error.facts:
        headers["Retry-After"] = str(error.facts["retry_after"])
    if not wants_page(request):
        body = {"success": False, "error": error.code, "message": error.message}
        return JSONResponse(body, status_code=status, headers=headers)
    if isinstance(error, UnauthorizedError) and request.method in ("GET", "HEAD"):
        return RedirectResponse("/login", status_code=303)
    page = fill("problem.html", message=error.message)
    return HTMLResponse(page, status_code=status, headers=headers)
