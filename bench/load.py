"""How much at once: messages taken in, messages answered, and a crowd larger than the house."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from bench.figures import Figure, sampled
from bench.host import chat_of, furnish, running
from bench.process import processor_time
from bench.talk import talking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import httpx

    from bench.talk import Talk

CHATS = 16
_QUIET = "web:quiet"  # needs a trigger word, so that what is said there is stored and wakes nobody
_CROWD, _EACH, _SLOTS = 50, 4, 5


class _Effort:
    """From its making on: how long it took, and what the host had to do for it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._began = time.perf_counter()
        self._burnt = processor_time(pid)

    def figures(self, key: str, what: str, count: int) -> Sequence[Figure]:
        took = time.perf_counter() - self._began
        burnt = processor_time(self._pid) - self._burnt
        each = "— CPU of the host for each"
        return [
            Figure(key=f"{key}.rate", what=what, unit="/s", value=count / took, n=count),
            Figure(key=f"{key}.cpu", what=each, unit="ms", value=1e3 * burnt / count, n=count),
        ]


async def measure(folder: Path, rounds: int) -> Sequence[Figure]:
    """`rounds` is how often each chat speaks."""
    home = folder / "load"
    await furnish(home, CHATS, slots=CHATS)
    async with running(home) as host, host.client() as client:
        accepted = await _accept(client, host.pid, rounds)
        async with talking(client, *(chat_of(number) for number in range(CHATS))) as talks:
            answered = await _answer(talks, host.pid, rounds)
    return [*accepted, *answered, await _crowd(folder)]


async def _accept(client: httpx.AsyncClient, pid: int, rounds: int) -> Sequence[Figure]:
    """Stored durably, one request each, sixteen at a time, by one client beside the host."""
    group = {"chat": _QUIET, "name": "Quiet", "folder": "quiet"}
    (await client.post("/api/groups", json=group)).raise_for_status()

    async def speak() -> None:
        for number in range(rounds):
            body = {"text": f"word {number}"}
            answer = await client.post(f"/api/chats/{_QUIET}/messages", json=body)
            answer.raise_for_status()

    effort = _Effort(pid)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CHATS):
            tasks.create_task(speak())
    return effort.figures("accepted", "messages stored, over HTTP", CHATS * rounds)


async def _answer(talks: Sequence[Talk], pid: int, rounds: int) -> Sequence[Figure]:
    """Every chat with a warm agent says the next thing when it has heard the answer."""
    async with asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(talk.ask("stay"))
    waits: list[float] = []

    async def converse(talk: Talk) -> None:
        for _ in range(rounds):
            trip = await talk.ask("more")
            waits.append((trip.delivered - trip.posted) / 1e6)

    effort = _Effort(pid)
    async with asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(converse(talk))
    what = f"messages answered, {len(talks)} chats side by side, warm agents"
    return [
        *effort.figures("answered", what, len(waits)),
        sampled("answered.turn", "— of that, one whole turn", "ms", waits),
    ]


async def _crowd(folder: Path) -> Figure:
    """Agents that stay alive, ten times as many as there is room for: nobody waits for a timer."""
    home = folder / "crowd"
    await furnish(home, _CROWD, slots=_SLOTS)
    waits: list[float] = []

    async def speak(talk: Talk) -> None:
        began = time.perf_counter()
        await talk.answered(*[await talk.say("stay") for _ in range(_EACH)])
        waits.append(time.perf_counter() - began)

    async with running(home) as host, host.client() as client:
        chats = [chat_of(number) for number in range(_CROWD)]
        async with talking(client, *chats) as talks, asyncio.TaskGroup() as tasks:
            for talk in talks:
                tasks.create_task(speak(talk))
    total = _CROWD * _EACH
    what = f"{total} messages to {_CROWD} groups at once, {_SLOTS} slots, agents stay alive"
    return Figure(key="burst.time", what=what, unit="s", value=max(waits), n=total)
