"""kill -9 at any point: no stored message is lost, none is answered twice, no process is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from hallporter.sandboxes.machine import interpreter
from tests.journeys.host import Host, marked_processes, running, settings

LEDGER = Path(__file__).parents[1] / "programs" / "ledger.py"
CHATS = tuple(f"web:kill{number}" for number in range(4))
BURST = 8  # messages a round
SETTLE_EVERY = 10  # rounds: lets a chat with bad luck climb down from its retry ladder
FINAL_PATIENCE = 300.0  # seconds: a ladder may have to be climbed
KILL_WITHIN = 3.0  # seconds: a point that is not reached is passed over
INSIST = 60  # messages more, a tenth of a second apart, for the points that need a busy agent
FOLLOW_UP = ("batch.piped", "batch.written")  # reached only while an agent works

# How often an event can be counted on in one round.
OFTEN = {"message.accepted": BURST, "turn.claimed": 3, "block.read": 4, "block.committed": 4}

# After these events the host, or the agent, is killed at once. What lies before an event is
# after another one: before `turn.claimed` is after `message.accepted`, and so on.
POINTS = (
    "",  # at a random moment
    "message.accepted",
    "turn.claimed",
    "agent.spawned",
    "block.read",
    "block.committed",
    "batch.piped",
    "batch.written",
    "reply.sent",
)


@dataclass
class Story:
    """What was sent, and what is known of it."""

    seed: int
    dice: random.Random
    home: Path
    count: int = 0
    hits: Counter[str] = field(default_factory=Counter)  # point → kills that fell on it
    stored: dict[str, str] = field(default_factory=dict)  # token → chat

    def next_message(self) -> tuple[str, str]:
        self.count += 1
        token = f"tok-{self.seed:x}-{self.count}"
        return self.dice.choice(CHATS), token


def make_home(home: Path, sandbox: str) -> None:
    settings(
        home,
        f"""
        [host]
        log_level = "debug"
        max_concurrent_containers = 3
        [agent]
        kind = "command"
        command = ["{interpreter()}", "{LEDGER}"]
        sandbox = "{sandbox}"
        """,
    )


async def post(
    client: httpx.AsyncClient, story: Story, chat: str, token: str, manner: str = "now"
) -> None:
    """A message counts as stored once the host has said so; asking again is harmless."""
    body = {"text": f"please {manner} note {token}", "id": token}
    answer = await client.post(f"/api/chats/{chat}/messages", json=body)
    assert answer.status_code in (200, 202), answer.text
    story.stored[token] = chat


async def register(host: Host) -> None:
    async with host.client() as client:
        for chat in CHATS:
            name = chat.partition(":")[2]
            body = {"chat": chat, "name": name, "folder": name, "requires_trigger": False}
            answer = await client.post("/api/groups", json=body)
            assert answer.status_code in (201, 409), answer.text


def kill_agent(story: Story) -> None:
    pids = marked_processes(story.home)
    if pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(story.dice.choice(pids), signal.SIGKILL)


async def one_round(story: Story, point: str) -> str:
    nth = story.dice.randint(1, OFTEN.get(point, 1))
    spares_host = story.dice.random() < 0.15
    victim = "agent" if spares_host else "host"
    reached = asyncio.Event()
    seen = 0

    def watch(line: dict[str, Any]) -> None:
        nonlocal seen
        if line["event"] == point:
            seen += 1
            if seen == nth:
                strike()

    def strike() -> None:
        if not reached.is_set():
            reached.set()
            if spares_host:
                kill_agent(story)
            else:
                host.kill()

    async with running(story.home) as host:
        host.on_event = watch
        if not point:
            delay = story.dice.uniform(0, 0.5)
            asyncio.get_running_loop().call_later(delay, strike)
        async with host.client() as client, asyncio.TaskGroup() as senders:
            for _ in range(BURST):
                chat, token = story.next_message()
                senders.create_task(try_post(client, story, chat, token))
                await asyncio.sleep(story.dice.uniform(0, 0.03))
        if point in FOLLOW_UP:
            await insist(host, story, reached)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_WITHIN):
                await reached.wait()
        is_hit = reached.is_set()
        host.kill()
    await no_process_left(story.home)
    story.hits[point] += is_hit
    return f"{victim} after {nth}× {point or 'a moment'}{'' if is_hit else ': not reached'}"


async def insist(host: Host, story: Story, reached: asyncio.Event) -> None:
    """Keep agents at work, and keep talking to them, until one is handed a follow-up."""
    async with host.client() as client:
        for _ in range(INSIST):
            if reached.is_set():
                return
            chat, token = story.next_message()
            await try_post(client, story, chat, token, "slowly")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await reached.wait()


async def try_post(
    client: httpx.AsyncClient, story: Story, chat: str, token: str, manner: str = "now"
) -> None:
    with contextlib.suppress(httpx.TransportError):
        await post(client, story, chat, token, manner)


async def no_process_left(home: Path) -> None:
    """The boxes of a killed host end with it."""
    async with asyncio.timeout(10):
        while marked_processes(home):  # noqa: ASYNC110  other people's processes tell nobody
            await asyncio.sleep(0.05)


async def transcript(client: httpx.AsyncClient, chat: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    after = ""
    while True:
        params = {"limit": "200", **({"after": after} if after else {})}
        page = (await client.get(f"/api/chats/{chat}/messages", params=params)).json()
        messages += page["messages"]
        if page["next"] is None:
            return messages
        after = page["next"]


async def settle(story: Story) -> None:
    """Let the house come to rest by itself; only what was parked waits for one more message."""
    async with running(story.home) as host, host.client() as client:
        async with asyncio.timeout(FINAL_PATIENCE):
            waiting = {
                story.stored[token] for token in [*story.stored] if await is_parked(client, token)
            }
            for chat in waiting:
                _, token = story.next_message()
                await post(client, story, chat, token)
            for token in [*story.stored]:
                await is_final(client, token)


async def is_parked(client: httpx.AsyncClient, token: str) -> bool:
    """Once it has its end, or waits for the chat's next message."""
    while True:
        fate = (await client.get(f"/api/messages/{token}/fate")).json()
        if fate["state"] == "failed" and "retry_at" not in fate:
            return True
        if fate["state"] not in ("queued", "running", "failed"):
            return False
        await asyncio.sleep(0.2)


async def is_final(client: httpx.AsyncClient, token: str) -> None:
    while True:
        fate = (await client.get(f"/api/messages/{token}/fate")).json()
        if fate["state"] not in ("queued", "running", "failed", "waiting"):
            return
        await asyncio.sleep(0.2)


async def judge(story: Story) -> None:
    async with running(story.home) as host, host.client() as client:
        answers: dict[str, int] = {}
        kept: set[str] = set()
        for chat in CHATS:
            for message in await transcript(client, chat):
                if not message["is_bot"]:
                    kept.add(message["id"])
                for word in message["text"].split() if message["is_bot"] else ():
                    if word.startswith("tok-"):
                        answers[word] = answers.get(word, 0) + 1
        lost = [token for token in story.stored if token not in kept]
        unanswered = [token for token in story.stored if token not in answers]
        twice = [token for token, times in answers.items() if times > 1]
        for token in unanswered[:3]:
            say((await client.get(f"/api/messages/{token}/fate")).text)
        assert (lost, unanswered, twice) == ([], [], [])
    await no_process_left(story.home)


def say(line: str) -> None:
    """Shown when the test fails, and with -s."""
    sys.stderr.write(f"{line}\n")


async def run_story(home: Path, rounds: int, sandbox: str) -> None:
    seed = int(os.environ.get("HALLPORTER_KILL_SEED") or random.SystemRandom().getrandbits(32))
    say(f"HALLPORTER_KILL_SEED={seed}")
    story = Story(seed=seed, dice=random.Random(seed), home=home)
    make_home(home, sandbox)
    async with running(home) as host:
        await register(host)
    points = [POINTS[number % len(POINTS)] for number in range(rounds)]
    story.dice.shuffle(points)
    for number, point in enumerate(points, 1):
        what = await one_round(story, point)
        say(f"round {number}: {what}")
        if number % SETTLE_EVERY == 0:
            await settle(story)
    await settle(story)
    await judge(story)
    say(f"{len(story.stored)} stored messages over {rounds} kills; hits: {dict(story.hits)}")
    if rounds >= len(POINTS) * 3:
        assert all(story.hits[point] for point in POINTS), story.hits


@pytest.mark.timeout(900)
async def test_thirty_kills_lose_nothing_and_answer_nothing_twice(tmp_path: Path) -> None:
    await run_story(tmp_path / "home", 30, "bubblewrap")


@pytest.mark.full
@pytest.mark.timeout(5400)
async def test_three_hundred_kills_lose_nothing_and_answer_nothing_twice(tmp_path: Path) -> None:
    await run_story(tmp_path / "home", 300, "bubblewrap")


@pytest.mark.timeout(900)
async def test_ten_kills_with_plain_processes_leave_nothing_behind(tmp_path: Path) -> None:
    await run_story(tmp_path / "home", 10, "process")
