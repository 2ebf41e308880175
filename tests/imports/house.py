"""A house to move into: the real app on a real database, and what an import says there."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallporter.domain.ids import ChatId
from tests.api.front import open_front

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hallporter.domain.chat import Chat
    from tests.api.front import Front
    from tests.imports.home import Source


@dataclass(frozen=True, slots=True)
class House:
    """`path` is its home."""

    front: Front
    path: Path

    async def move_in(self, source: Source, *, is_dry_run: bool = False) -> dict[str, Any]:
        body = {"path": str(source.path), "config": str(source.config), "is_dry_run": is_dry_run}
        async with self.front.client() as operator:
            answer = await operator.post("/api/imports/nanoclaw", json=body)
        assert answer.status_code == 200, answer.text
        *progress, last = [json.loads(line) for line in answer.text.splitlines()]
        assert progress[0]["done"] == 0
        assert progress[-1]["done"] == progress[-1]["total"]
        report: dict[str, Any] = last["report"]
        return report

    async def get(self, path: str) -> Any:
        async with self.front.client() as operator:
            answer = await operator.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def groups(self) -> dict[str, dict[str, Any]]:
        """By chat, main first."""
        return {group["chat"]: group for group in (await self.get("/api/groups"))["data"]}

    async def tasks(self) -> dict[str, dict[str, Any]]:
        return {task["id"]: task for task in (await self.get("/api/tasks"))["data"]}

    async def said(self, chat: str) -> list[str]:
        found = await self.front.store.read(lambda tx: tx.messages.page(ChatId(chat), 0, 1000))
        return [message.text for message in found]

    async def chat(self, chat: str) -> Chat:
        found = await self.front.store.read(lambda tx: tx.chats.get(ChatId(chat)))
        assert found is not None
        return found


@contextlib.asynccontextmanager
async def open_house(path: Path) -> AsyncIterator[House]:
    """As a command finds it: the house has made its own main."""
    path.mkdir()
    async with open_front(path) as front:
        await front.desk.groups.ensure_main()
        yield House(front, path)


def counted(report: dict[str, Any], outcome: str) -> dict[str, int]:
    """Without those of which there is none."""
    return {noun: by[outcome] for noun, by in report["counts"].items() if by[outcome]}


def remarks(report: dict[str, Any], sort: str) -> str:
    """A line each: about what, some names, what is said."""
    told = [one for one in report["remarks"] if one["sort"] == sort]
    return "\n".join(f"{one['about']} {one['examples']} {one['what']}" for one in told)
