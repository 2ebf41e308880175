"""Every address of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from hallporter.domain.errors import NotFoundError
from hallporter.web.chat import ChatPage, article
from hallporter.web.entrance import Entrance
from hallporter.web.guard import guarded, guarding
from hallporter.web.templates import static_files
from hallporter.web.typesetter import Typesetter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from hallporter.domain.message import Message
    from hallporter.web.guard import Visitor
    from hallporter.web.lobby import Lobby


def routes(lobby: Lobby, *, article: Callable[[Message], str] = article) -> list[Route]:
    """For the app that serves them; `article` sets one message."""
    chat = ChatPage(lobby, Typesetter(article))
    entrance = Entrance(lobby)

    def inside(
        path: str, view: Callable[[Request, Visitor], Awaitable[Response]], method: str = "GET"
    ) -> Route:
        return Route(path, guarded(lobby.sessions, view), methods=[method])

    def outside(
        path: str, view: Callable[[Request], Awaitable[Response]], method: str = "GET"
    ) -> Route:
        return Route(path, guarding(view), methods=[method])

    return [
        inside("/", chat.show),
        inside("/chats/{chat}/earlier", chat.earlier),
        inside("/chats/{chat}/events", chat.follow),
        inside("/chats/{chat}/files/{id}", chat.file),
        inside("/chats/{chat}/say", chat.say, "POST"),
        inside("/fates/{id:path}", chat.fate),
        inside("/notices", chat.notices),
        inside("/sessions", entrance.show_sessions),
        inside("/sessions/{id}/revoke", entrance.revoke, "POST"),
        inside("/logout", entrance.log_out, "POST"),
        outside("/login", entrance.show_login),
        outside("/login", entrance.log_in, "POST"),
        outside("/enter/{secret}", entrance.enter),
        outside("/static/{name}", _static),
    ]


async def _static(request: Request) -> Response:
    file = static_files().get(request.path_params["name"])
    if file is None:
        raise NotFoundError("there is nothing at this address")
    # Only an address that names the content never has another under it.
    is_named = request.query_params.get("v") == file.version
    keep = "public, max-age=31536000, immutable" if is_named else "no-cache"
    return Response(file.body, media_type=file.type, headers={"Cache-Control": keep})
