"""What a host that has nothing to do holds and burns, with few groups and with many."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.host import PATIENCE, chat_of, furnish, running
from bench.process import processor_time, resident
from bench.talk import talking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from bench.host import Host

GROUPS = (1, 100, 10_000)
GOAL_RSS = 90.0  # megabytes at 100 groups
GOAL_GROWTH = 1.1  # times the memory at one group: flat, but for the noise of an allocator
GOAL_CPU = 0.3  # percent of a core above a server that does nothing
_TURNS = 5  # before the look: a host that has worked, not one that has only been started
_SETTLE = 3.0  # seconds
_BARE = """
import uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})
uvicorn.run(app, host="127.0.0.1", port=0, log_level="info", lifespan="off")
"""


async def measure(folder: Path, seconds: float) -> Sequence[Figure]:
    """All hosts rest side by side for so long, beside a bare server."""
    async with contextlib.AsyncExitStack() as stack:
        pids = {}
        for groups in GROUPS:
            home = folder / f"footprint-{groups}"
            await furnish(home, groups)
            host = await stack.enter_async_context(running(home))
            await _work(host)
            pids[groups] = host.pid
        bare = await stack.enter_async_context(_bare_server())
        await asyncio.sleep(_SETTLE)
        held = {groups: resident(pid) for groups, pid in pids.items()}
        spent = await burnt([bare, *pids.values()], seconds)
    return _figures(held, spent[0], dict(zip(pids, spent[1:], strict=True)))


async def _work(host: Host) -> None:
    async with host.client() as client, talking(client, chat_of(0)) as (talk,):
        for _ in range(_TURNS):
            await talk.ask("once")


@contextlib.asynccontextmanager
async def _bare_server() -> AsyncIterator[int]:
    """Its pid, once it listens."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _BARE),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while b"running on" not in (line := await process.stderr.readline()):
                if not line:
                    raise RuntimeError("the bare server did not start")
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


async def burnt(pids: Sequence[int], seconds: float) -> Sequence[float]:
    """Percent of one core, each, over the same stretch of time."""
    before, began = [processor_time(pid) for pid in pids], time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - began
    after = [processor_time(pid) for pid in pids]
    return [100 * (late - early) / took for early, late in zip(before, after, strict=True)]


def _figures(held: dict[int, float], bare: float, burnt: dict[int, float]) -> Sequence[Figure]:
    least, most = GROUPS[0], GROUPS[-1]
    memory = [
        Figure(
            key=f"rss.{groups}",
            what=f"resident memory, {groups:,} group{'s' if groups > 1 else ''}",
            unit="MB",
            value=held[groups],
            at_most=GOAL_RSS if groups == 100 else None,
        )
        for groups in GROUPS
    ]
    growth = Figure(
        key="rss.growth",
        what=f"— {most:,} groups beside {least}",
        unit="×",
        value=held[most] / held[least],
        at_most=GOAL_GROWTH,
    )
    processor = [
        Figure(
            key=f"cpu.{groups}", what=f"idle CPU, {groups:,} groups", unit="%", value=burnt[groups]
        )
        for groups in GROUPS[1:]
    ]
    above = Figure(
        key="cpu.above",
        what="— 100 groups above bare uvicorn",
        unit="%",
        value=burnt[100] - bare,
        at_most=GOAL_CPU,
    )
    idle = Figure(key="cpu.bare", what="idle CPU, bare uvicorn", unit="%", value=bare)
    return [*memory, growth, idle, *processor, above]
