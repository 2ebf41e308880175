"""How much at once: messages taken in, messages answered, and a crowd larger than the house."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from bench.figures import Figure, sampled
from bench.host import PATIENCE, chat_of, furnish, running
from bench.talk import talking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import httpx

    from bench.talk import Talk

CHATS = 16
_QUIET = "web:quiet"  # needs a trigger word, so that what is said there is stored and wakes nobody
_CROWD, _EACH, _SLOTS = 50, 4, 5
_LOOK_AGAIN = 0.05  # seconds


async def measure(folder: Path, rounds: int) -> Sequence[Figure]:
    """`rounds` is how often each chat speaks."""
    home = folder / "load"
    await furnish(home, CHATS, slots=CHATS)
    async with running(home) as host, host.client() as client:
        accepted = await _accept(client, rounds)
        async with talking(client, *(chat_of(number) for number in range(CHATS))) as talks:
            answered = await _answer(talks, rounds)
    return [accepted, *answered, await _crowd(folder)]


async def _accept(client: httpx.AsyncClient, rounds: int) -> Figure:
    """Stored durably, one request each, sixteen at a time, by one client beside the host."""
    group = {"chat": _QUIET, "name": "Quiet", "folder": "quiet"}
    (await client.post("/api/groups", json=group)).raise_for_status()

    async def speak() -> None:
        for number in range(rounds):
            body = {"text": f"word {number}"}
            answer = await client.post(f"/api/chats/{_QUIET}/messages", json=body)
            answer.raise_for_status()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CHATS):
            tasks.create_task(speak())
    total = CHATS * rounds
    return Figure(
        key="accepted.rate",
        what="messages stored, over HTTP",
        unit="/s",
        value=total / (time.perf_counter() - began),
        n=total,
    )


async def _answer(talks: Sequence[Talk], rounds: int) -> Sequence[Figure]:
    """Every chat with a warm agent says the next thing when it has heard the answer."""
    async with asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(talk.ask("stay"))
    waits: list[float] = []

    async def converse(talk: Talk) -> None:
        for _ in range(rounds):
            trip = await talk.ask("more")
            waits.append((trip.delivered - trip.posted) / 1e6)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(converse(talk))
    took = time.perf_counter() - began
    what = f"messages answered, {len(talks)} chats side by side, warm agents"
    return [
        Figure(key="answered.rate", what=what, unit="/s", value=len(waits) / took, n=len(waits)),
        sampled("answered.turn", "— of that, one whole turn", "ms", waits),
    ]


async def _crowd(folder: Path) -> Figure:
    """Agents that stay alive, ten times as many as there is room for: nobody waits for a timer."""
    home = folder / "crowd"
    await furnish(home, _CROWD, slots=_SLOTS)
    total = _CROWD * _EACH
    async with running(home) as host, host.client() as client:

        async def speak(number: int) -> None:
            for _ in range(_EACH):
                path = f"/api/chats/{chat_of(number)}/messages"
                (await client.post(path, json={"text": "stay"})).raise_for_status()

        began = time.perf_counter()
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            for number in range(_CROWD):
                tasks.create_task(speak(number))
        async with asyncio.timeout(PATIENCE):
            while await _answered(client) < total:
                await asyncio.sleep(_LOOK_AGAIN)
        took = time.perf_counter() - began
    what = f"{total} messages to {_CROWD} groups at once, {_SLOTS} slots, agents stay alive"
    return Figure(key="burst.time", what=what, unit="s", value=took, n=total)


async def _answered(client: httpx.AsyncClient) -> int:
    status = (await client.get("/api/status")).raise_for_status().json()
    count: int = status["data"]["messages"].get("answered", 0)
    return count
