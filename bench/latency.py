"""How long a message is under way: to an agent that must be started, that is warm, that works."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.figures import Figure, median, sampled
from bench.host import chat_of, furnish, running
from bench.spawn import RawSpawn
from bench.talk import talking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.talk import Talk, Trip

_WARM = 4  # agents kept alive at a time: fewer than there are slots
_PAUSE = (0.05, 0.12)  # seconds between arrivals: nothing of the last one is still under way

GOAL_ABOVE_SPAWN = 25.0  # milliseconds
GOAL_STEP = 10.0  # milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Journeys:
    """What was seen with one number of groups."""

    raw: Sequence[float]  # milliseconds
    cold: Sequence[Trip]
    warm: Sequence[Trip]
    piped: Sequence[Trip]


async def measure(folder: Path, groups: int, rounds: int) -> Sequence[Figure]:
    """With this many groups registered."""
    home = folder / f"latency-{groups}"
    await furnish(home, groups)
    async with running(home) as host, host.client() as client:
        chats = [chat_of(number) for number in range(min(groups, rounds))]
        async with talking(client, *chats) as talks:
            raw, cold = await _cold(RawSpawn(home), talks, rounds)
            warm = await _warm(talks[:_WARM], rounds)
            piped = await _piped(talks[:_WARM], rounds)
    return _figures(groups, Journeys(raw=raw, cold=cold, warm=warm, piped=piped))


async def _cold(
    spawn: RawSpawn, talks: Sequence[Talk], rounds: int
) -> tuple[Sequence[float], Sequence[Trip]]:
    """The two take turns, and in going first, so that what else happens troubles both alike."""
    raw, cold = [], []
    for number in range(-1, rounds):
        talk = talks[number % len(talks)]
        spawned = await _spawn(spawn) if number % 2 else None
        await _pause()
        trip = await talk.ask("once")
        spawned = await _spawn(spawn) if spawned is None else spawned
        if number >= 0:  # the very first of each pays for imports and cold caches
            raw.append(spawned)
            cold.append(trip)
    return raw, cold


async def _spawn(spawn: RawSpawn) -> float:
    await _pause()
    return await spawn.once()


async def _warm(talks: Sequence[Talk], rounds: int) -> Sequence[Trip]:
    """A turn has ended; its agent waits, and the next message is a new turn with it."""
    for talk in talks:
        await talk.ask("stay")
    trips = []
    for number in range(rounds):
        await _pause()
        trips.append(await talks[number % len(talks)].ask("more"))
    return trips


async def _piped(talks: Sequence[Talk], rounds: int) -> Sequence[Trip]:
    """The turn is still open when the follow-up comes."""
    trips = []
    for number in range(rounds):
        talk = talks[number % len(talks)]
        await talk.ask("hold")
        await _pause()
        trips.append(await talk.ask("more"))
        await _pause()
    return trips


async def _pause() -> None:
    await asyncio.sleep(random.uniform(*_PAUSE))


def _figures(groups: int, seen: Journeys) -> Sequence[Figure]:
    suffix = "" if groups > 1 else ".1"
    where = "1 group" if groups == 1 else f"{groups} groups"
    cold = [trip.to_agent for trip in seen.cold]
    return [
        sampled(f"raw.spawn{suffix}", f"raw spawn of the sandbox, {where}", "ms", seen.raw),
        sampled(f"cold.stdin{suffix}", f"accepted → agent's stdin, cold, {where}", "ms", cold),
        Figure(
            key=f"cold.above{suffix}",
            what=f"— of that, above the raw spawn, {where}",
            unit="ms",
            value=median(cold) - median(seen.raw),
            n=len(cold),
            at_most=GOAL_ABOVE_SPAWN,
        ),
        _step(f"cold.delivered{suffix}", f"block → delivered, cold, {where}", _out(seen.cold)),
        _step(f"warm.delivered{suffix}", f"block → delivered, warm, {where}", _out(seen.warm)),
        _step(
            f"warm.file{suffix}",
            f"follow-up accepted → input file, agent warm, {where}",
            [trip.to_agent for trip in seen.warm],
        ),
        _step(
            f"piped.file{suffix}",
            f"follow-up accepted → input file, agent at work, {where}",
            [trip.to_agent for trip in seen.piped],
        ),
    ]


def _out(trips: Sequence[Trip]) -> Sequence[float]:
    return [trip.to_person for trip in trips]


def _step(key: str, what: str, values: Sequence[float]) -> Figure:
    return sampled(key, what, "ms", values, at_most=GOAL_STEP)
