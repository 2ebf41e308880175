"""The way to the host, when it goes away."""

from __future__ import annotations

import socket

import httpx
import pytest

from hallporter.cli.host import REPEAT, Client
from hallporter.domain.errors import UnavailableError


async def test_who_removes_something_is_told_to_repeat_it_when_the_host_goes_away() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=address) as http:
            client = Client(http, is_running=True)
            with pytest.raises(UnavailableError, match="repeat the command"):
                await client.post("/api/forget", {"chat": "web:main"}, advice=REPEAT)
            with pytest.raises(UnavailableError, match="repeat the command"):
                await client.delete("/api/groups/family", advice=REPEAT, purge="true")
