"""The pages for tests: the real app with its API, and browsers that keep cookies."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from hallporter.api.app import create_app
from hallporter.web.lobby import Answerer, Lobby
from hallporter.web.routes import routes
from tests.api.front import ADMIN, Front, open_front
from tests.fakes.ids import counting_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hallporter.domain.notice import Notice

HTML = "text/html"


@dataclass(kw_only=True)
class Hall:
    """A front whose app serves the pages too; its main chat is registered."""

    front: Front
    lobby: Lobby
    raised: list[Notice]

    def stranger(self, base: str = "http://house", address: str = "10.0.0.1") -> httpx.AsyncClient:
        """A browser that is not logged in."""
        transport = httpx.ASGITransport(self.front.app, client=(address, 5000))
        return httpx.AsyncClient(transport=transport, base_url=base, headers={"Accept": HTML})

    async def link(self) -> str:
        return f"/enter/{(await self.front.desk.sessions.invite()).secret}"

    @contextlib.asynccontextmanager
    async def browser(self, base: str = "http://house") -> AsyncIterator[httpx.AsyncClient]:
        """One that is."""
        async with self.stranger(base) as client:
            answer = await client.get(await self.link())
            assert answer.status_code == 200, answer.text
            yield client


def csrf_in(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
    assert found is not None, page.text
    return found[1]


async def log_in(client: httpx.AsyncClient, token: str = ADMIN) -> httpx.Response:
    csrf = csrf_in(await client.get("/login"))
    return await client.post("/login", data={"csrf": csrf, "token": token})


@contextlib.asynccontextmanager
async def open_hall(path: Path) -> AsyncIterator[Hall]:
    async with open_front(path) as front:
        desk = front.desk
        raised: list[Notice] = []

        async def notices() -> list[Notice]:
            return raised

        lobby = Lobby(
            intake=desk.intake,
            story=desk.story,
            enclosures=desk.enclosures,
            groups=desk.groups,
            sessions=desk.sessions,
            feed=front.feed,
            clock=front.clock,
            new_id=counting_id,
            web=front.web,
            notices=notices,
            answerer_of=lambda _group: Answerer(kind="demo", sandbox="bubblewrap"),
            assistant_name="Andy",
            version="9.9.9",
        )
        front.app = create_app(desk, routes(lobby))
        await front.register()
        yield Hall(front=front, lobby=lobby, raised=raised)
