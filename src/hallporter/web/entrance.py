"""In and out: the log-in page, the one-time link, and the list of who is logged in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, RedirectResponse, Response

from hallporter.domain.errors import RateLimitedError, UnauthorizedError
from hallporter.web.guard import (
    browser_of,
    check_form,
    csrf_of,
    form_of,
    let_in,
    let_out,
    remember_visit,
    visit_of,
)
from hallporter.web.templates import fill

if TYPE_CHECKING:
    from starlette.requests import Request

    from hallporter.web.guard import Visitor
    from hallporter.web.lobby import Lobby


@dataclass(frozen=True, slots=True)
class Entrance:
    """The pages at the door."""

    lobby: Lobby

    async def show_login(self, request: Request) -> Response:
        return self._login_page(request)

    async def log_in(self, request: Request) -> Response:
        await check_form(request, csrf_of(visit_of(request)))
        token = (await form_of(request)).get("token", "")
        try:
            done = await self.lobby.sessions.enter_by_token(token, browser_of(request))
        except (UnauthorizedError, RateLimitedError) as error:
            return self._login_page(request, error)
        return let_in(request, done)

    async def enter(self, request: Request) -> Response:
        # Who only looks ahead (a preview, a preloading browser) must not use the link up.
        if request.method == "HEAD" or "prefetch" in request.headers.get("sec-purpose", ""):
            return Response(status_code=204)
        secret = request.path_params["secret"]
        try:
            done = await self.lobby.sessions.enter_by_link(secret, browser_of(request))
        except (UnauthorizedError, RateLimitedError) as error:
            return self._login_page(request, error)
        return let_in(request, done)

    async def log_out(self, request: Request, visitor: Visitor) -> Response:
        await self.lobby.sessions.revoke(visitor.session.id)
        return let_out(request)

    async def show_sessions(self, _request: Request, visitor: Visitor) -> Response:
        sessions = await self.lobby.sessions.all()
        return HTMLResponse(
            fill("sessions.html", sessions=sessions, own=visitor.session.id, csrf=visitor.csrf)
        )

    async def revoke(self, request: Request, visitor: Visitor) -> Response:
        session = request.path_params["id"]
        await self.lobby.sessions.revoke(session)
        if session == visitor.session.id:
            return let_out(request)
        return RedirectResponse("/sessions", status_code=303)

    def _login_page(
        self, request: Request, error: UnauthorizedError | RateLimitedError | None = None
    ) -> Response:
        secret = visit_of(request)
        page = fill(
            "login.html", csrf=csrf_of(secret), error="" if error is None else error.message
        )
        response = HTMLResponse(page)
        if isinstance(error, RateLimitedError):
            response.status_code = 429
            response.headers["Retry-After"] = str(error.facts["retry_after"])
        elif error is not None:
            response.status_code = 401
        remember_visit(request, response, secret)
        return response
