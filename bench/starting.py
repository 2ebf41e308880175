"""How soon it is there: a start, a start after a crash in the middle of a turn, a page of help."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import Figure, median, sampled
from bench.host import PATIENCE, chat_of, folder_of, furnish, running
from bench.talk import Talk, talking

if TYPE_CHECKING:
    from collections.abc import Sequence

GOAL_HELP = 1.5  # times an empty Typer app
_LOOK_AGAIN = 0.01  # seconds
_EMPTY_APP = """
import typer

app = typer.Typer()


@app.command()
def nothing() -> None:
    pass


app()
"""


async def measure(folder: Path, rounds: int) -> Sequence[Figure]:
    """So many starts and crashes; three times as many pages of help, which are quick."""
    home = folder / "starting"
    await furnish(home, 100)
    starts = [await _start(home) for _ in range(rounds + 1)][1:]  # the first fills caches
    restarts = [await _restart(home, number) for number in range(rounds)]
    return [
        sampled("start", "process start → ready, 100 groups", "s", starts),
        sampled("restart", "start after kill -9 in a turn → first answer", "s", restarts),
        *await _help(folder, 3 * rounds),
    ]


async def _start(home: Path) -> float:
    async with running(home) as host, host.client() as client:
        (await client.get("/readyz")).raise_for_status()
        return (time.time_ns() - host.started) / 1e9


async def _restart(home: Path, number: int) -> float:
    """The agent is at work when everything is killed; its next life answers at once."""
    chat = chat_of(number)
    hung = home / "groups" / folder_of(number) / "hung"
    async with running(home) as host, host.client() as client:
        said = await Talk(client, chat).say("hang once")
        async with asyncio.timeout(PATIENCE):
            while not hung.exists():  # noqa: ASYNC110  a file in a sandbox tells nobody of itself
                await asyncio.sleep(_LOOK_AGAIN)
        await host.end(signal.SIGKILL)
    async with (
        running(home) as host,
        host.client() as client,
        talking(client, chat, after=said) as (talk,),
    ):
        answer = await talk.hear_answer()
        return (answer.at - host.started) / 1e9


async def _help(folder: Path, rounds: int) -> Sequence[Figure]:
    """The two take turns."""
    script = folder / "empty_app.py"
    script.write_text(_EMPTY_APP)
    command = str(Path(sys.executable).with_name("hallporter"))
    ours, empty = [], []
    for number in range(rounds + 1):
        took = await _run(command, "--help")
        took_empty = await _run(sys.executable, str(script), "--help")
        if number > 0:  # the first of each fills caches
            ours.append(took)
            empty.append(took_empty)
    return [
        sampled("help.empty", "`--help` of an empty Typer app", "ms", empty),
        sampled("help", "`hallporter --help`", "ms", ours),
        Figure(
            key="help.ratio",
            what="— beside the empty app",
            unit="×",
            value=median(ours) / median(empty),
            n=rounds,
            at_most=GOAL_HELP,
        ),
    ]


async def _run(*argv: str) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    if await process.wait() != 0:
        raise RuntimeError(f"{' '.join(argv)} failed")
    return (time.perf_counter() - began) * 1e3
