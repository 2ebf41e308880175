"""How long an agent's own message is under way: from its file's rename to the person."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import TYPE_CHECKING

from bench.figures import sampled
from bench.host import chat_of, folder_of, furnish, running
from bench.talk import talking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.figures import Figure
    from bench.talk import Talk

GROUPS = 100
GOAL = 10.0  # milliseconds
_PAUSE = (0.05, 0.12)  # seconds


async def measure(folder: Path, rounds: int) -> Sequence[Figure]:
    """Each message from another group's folder, one after the other."""
    home = folder / "mail"
    await furnish(home, GROUPS)
    async with running(home) as host, host.client() as client:
        numbers = range(min(GROUPS, rounds))
        async with talking(client, *(chat_of(number) for number in numbers)) as talks:
            took = []
            for round_ in range(-1, rounds):
                number = round_ % len(talks)
                await asyncio.sleep(random.uniform(*_PAUSE))
                one = await _send(home, number, round_, talks[number])
                if round_ >= 0:  # the very first pays for what is read once
                    took.append(one)
    what = f"request renamed in → message delivered, {GROUPS} groups"
    return [sampled("mail.delivered", what, "ms", took, at_most=GOAL)]


async def _send(home: Path, number: int, round_: int, talk: Talk) -> float:
    """Milliseconds."""
    place = home / "data" / "ipc" / folder_of(number) / "messages"
    request = {"type": "message", "chatJid": chat_of(number), "text": f"number {round_}"}
    aside = place / f"{round_}.tmp"
    aside.write_text(json.dumps(request))
    began = time.time_ns()
    aside.rename(place / f"{round_}.json")
    heard = await talk.hear_answer()
    return (heard.at - began) / 1e6
