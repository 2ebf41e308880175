"""The app: every endpoint, behind the border, the door and the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.middleware import Middleware

from hallporter.api import (
    chats,
    doctor,
    errors,
    files,
    forgetting,
    groups,
    house,
    imports,
    links,
    manual,
    notices,
    tasks,
    tokens,
)
from hallporter.api.errors import Border
from hallporter.api.identity import Door
from hallporter.api.limits import BodyLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from hallporter.api.desk import Desk

_DESCRIPTION = (
    "A switchboard between chat networks and AI agents. Send `Authorization: Bearer hp_…`; a"
    " token comes from `hallporter tokens create`. A consumer's token opens the one chat it was"
    " made for, an operator's opens everything. Every error is `{success: false, error: CODE,"
    " message}`; a body has at most 1 MiB."
)


class Api(FastAPI):
    """FastAPI, described as it answers here."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _as_we_answer(super().openapi())
        return self.openapi_schema


def create_app(desk: Desk, pages: Sequence[BaseRoute] = ()) -> FastAPI:
    """The HTTP face of a desk; `pages` are served beside the API."""
    app = Api(
        title="Hallporter",
        version=desk.version,
        description=_DESCRIPTION,
        docs_url=None,  # FastAPI's own page loads from other people's servers
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Border),
            Middleware(Door, doorkeeper=desk.doorkeeper),
            Middleware(BodyLimit),
        ],
    )
    app.state.desk = desk
    errors.install(app)
    for router in (
        chats.router,
        files.router,
        groups.router,
        tasks.router,
        tokens.router,
        links.router,
        notices.router,
        forgetting.router,
        imports.router,
        doctor.router,
        house.router,
        house.open_router,
    ):
        app.include_router(router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(manual.page(app.openapi()), headers=manual.HEADERS)

    app.router.routes.extend(pages)
    return app


def _as_we_answer(description: dict[str, Any]) -> dict[str, Any]:
    """FastAPI announces its own answer to bad fields; ours is 400."""
    for methods in description["paths"].values():
        for operation in methods.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        description["components"]["schemas"].pop(name, None)
    return description
