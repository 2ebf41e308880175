"""A chat's events as they come, across dropped connections."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from hallporter.cli.host import in_path
from hallporter.domain.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hallporter.cli.host import Client

_TIMEOUT = httpx.Timeout(10.0, read=45.0)  # seconds; the host says something every 15
_BACK_AGAIN = 0.5  # seconds between two tries to connect


@dataclass(frozen=True, slots=True)
class Event:
    """`connected` is our own: what happened before it may have been missed."""

    kind: str
    data: dict[str, Any] = field(default_factory=dict)
    id: str = ""


class Parser:
    """Server-sent events, line by line."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def take(self, line: str) -> Event | None:
        """The event that this line completes."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if "event" not in fields or "data" not in fields:
            return None
        return Event(fields["event"], json.loads(fields["data"]), fields.get("id", ""))


async def follow(client: Client, chat: str, after: str | None = None) -> AsyncIterator[Event]:
    """For ever; a connection that drops is made again and goes on where it ended."""
    last = ""
    while True:
        headers = {"Last-Event-ID": last} if last else {}
        query = {"after": after} if after and not last else {}
        path = f"/api/chats/{in_path(chat)}/events"
        try:
            async with client.http.stream(
                "GET", path, headers=headers, params=query, timeout=_TIMEOUT
            ) as answer:
                if answer.is_client_error:
                    await answer.aread()
                    raise RefusedError(str(answer.json()["message"]))
                parser = Parser()
                yield Event("connected")
                async for line in answer.aiter_lines():
                    if (event := parser.take(line)) is not None:
                        last = event.id or last
                        yield event
        except httpx.HTTPError:
            pass  # the host ends or restarts: whoever waits has a time limit of their own
        await asyncio.sleep(_BACK_AGAIN)
