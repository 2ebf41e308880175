"""kill -9 while agents ask and ticks come due: each request acts once, each tick has one row."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sqlite3
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hallporter.sandboxes.machine import interpreter
from tests.journeys.host import Host, running, settings
from tests.journeys.test_kill import no_process_left, transcript

if TYPE_CHECKING:
    import httpx

LEDGER = Path(__file__).parents[1] / "programs" / "ledger.py"
FOLDERS = ("main", "kin", "work", "club")
COMMANDS = 200
TICKS = 50
RUNS = 20  # of the commands: a tick by hand
JUGGLED = 3  # tasks of each folder that are changed, paused and resumed again and again
FAR_AWAY = "0 0 1 1 *"
SPREAD = 20.0  # seconds over which the ticks come due
BURST = 10  # requests between two kills
CALM_EVERY = 4  # rounds
CALM = 2.0  # seconds in which nobody is killed, so that something gets done
PATIENCE = 120.0  # seconds for the house to come to rest

# The host is killed right after one of these was logged, or at a random moment.
POINTS = ("", "command.claimed", "command.carried_out", "tick.fired", "turn.claimed")


@dataclass
class Juggled:
    """A task that is asked to change all the time, and what it must have become."""

    folder: str
    steps: int = 0
    prompt: str = "far away"
    status: str = "active"

    def next(self, number: int) -> dict[str, Any]:
        """A step that was carried out twice, or late, would show at the end."""
        self.steps += 1
        match self.steps % 4:
            case 1 | 3:
                self.prompt = f"changed by {number}"
                return {"type": "update_task", "prompt": self.prompt}
            case 2:
                self.status = "paused"
                return {"type": "pause_task"}
        self.status = "active"
        return {"type": "resume_task"}


@dataclass
class Story:
    """What was asked for."""

    dice: random.Random
    home: Path
    said: dict[str, str] = field(default_factory=dict)  # token → folder
    scheduled: set[str] = field(default_factory=set)
    ticking: dict[str, str] = field(default_factory=dict)  # task → token
    waiting: list[tuple[str, str]] = field(default_factory=list)  # folder, task to be run by hand
    by_hand: dict[str, str] = field(default_factory=dict)  # task → token
    juggled: dict[str, Juggled] = field(default_factory=dict)  # by task
    cancelled: set[str] = field(default_factory=set)
    registered: set[str] = field(default_factory=set)
    names: list[tuple[str, str]] = field(default_factory=list)  # folder, file

    def ask(self, folder: str, box: str, request: dict[str, Any]) -> None:
        """As an agent would: written aside, then renamed in."""
        name = f"{len(self.names):06d}.json"
        self.names.append((folder, name))
        place = self.home / "data" / "ipc" / folder / box
        aside = place / f"{name}.tmp"
        aside.write_text(json.dumps(request))
        aside.rename(place / name)


def chat_of(folder: str) -> str:
    return f"web:{folder}"


async def prepare(host: Host, story: Story) -> None:
    async with host.client() as client:
        for folder in FOLDERS[1:]:
            body = {
                "chat": chat_of(folder),
                "name": folder,
                "folder": folder,
                "requires_trigger": False,
            }
            answer = await client.post("/api/groups", json=body)
            assert answer.status_code == 201, answer.text
        for number in range(RUNS):
            folder = FOLDERS[number % len(FOLDERS)]
            far = {"schedule_type": "cron", "schedule_value": FAR_AWAY}
            task = await add(client, folder, f"please note tok-bb-{number}", **far)
            story.waiting.append((folder, task))
            story.by_hand[task] = f"tok-bb-{number}"
        for folder in FOLDERS * JUGGLED:
            far = {"schedule_type": "cron", "schedule_value": FAR_AWAY}
            task = await add(client, folder, "far away", **far)
            story.juggled[task] = Juggled(folder)
        first = datetime.now(UTC) + timedelta(seconds=8)
        for number in range(TICKS):
            due = first + timedelta(seconds=SPREAD * number / TICKS)
            token = f"tok-aa-{number}"
            task = await add(
                client,
                FOLDERS[number % len(FOLDERS)],
                f"please note {token}",
                schedule_type="once",
                schedule_value=due.replace(tzinfo=None).isoformat(timespec="milliseconds"),
                timezone="UTC",
            )
            story.ticking[task] = token


async def add(client: httpx.AsyncClient, folder: str, prompt: str, **schedule: str) -> str:
    body = {"group": folder, "prompt": prompt, **schedule}
    answer = await client.post("/api/tasks", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


def ask_something(story: Story) -> None:
    """Half of it words, the rest everything else that an agent can ask for."""
    number = len(story.names)
    folder = story.dice.choice(FOLDERS)
    match number % 10:
        case 0 | 1 | 2 | 3 | 4:
            token = f"said-{number}"  # not for the agent to repeat: a retry is told what was sent
            story.said[token] = folder
            words = {"chatJid": chat_of(folder), "text": f"here is {token}"}
            story.ask(folder, "messages", {"type": "message", **words})
        case 5:
            schedule(story, folder)
        case 6:
            folder, task = story.waiting.pop()
            story.ask(folder, "tasks", {"type": "run_task", "task_id": task})
        case 7 | 8:
            task = story.dice.choice(list(story.juggled))
            step = story.juggled[task].next(number)
            story.ask(story.juggled[task].folder, "tasks", {**step, "task_id": task})
        case _ if number % 20 < 10 and story.scheduled:
            # By the same folder, so that it comes after the request that made it.
            task = min(story.scheduled)
            story.scheduled.remove(task)
            story.cancelled.add(task)
            story.ask(task.split("-")[2], "tasks", {"type": "cancel_task", "task_id": task})
        case _:
            name = f"new-{number}"
            story.registered.add(name)
            group = {"jid": chat_of(name), "name": name, "folder": name, "trigger": "@Andy"}
            story.ask("main", "tasks", {"type": "register_group", **group})


def schedule(story: Story, folder: str) -> None:
    task = f"task-cc-{folder}-{len(story.names)}"
    story.scheduled.add(task)
    wanted = {"prompt": "far away", "schedule_type": "cron", "schedule_value": FAR_AWAY}
    story.ask(folder, "tasks", {"type": "schedule_task", "task_id": task, **wanted})


async def one_round(story: Story, point: str) -> bool:
    """Whether the kill fell where it was meant to."""
    struck = asyncio.Event()

    def strike() -> None:
        struck.set()
        host.kill()

    def watch(line: dict[str, Any]) -> None:
        if point and line["event"] == point and not struck.is_set():
            strike()

    async with running(story.home) as host:
        host.on_event = watch
        if not point:
            asyncio.get_running_loop().call_later(story.dice.uniform(0, 0.5), strike)
        for _ in range(BURST):
            if len(story.names) < COMMANDS:
                ask_something(story)
            await asyncio.sleep(story.dice.uniform(0, 0.02))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await struck.wait()
        is_hit = struck.is_set()
        host.kill()
    return is_hit


async def at_rest(client: httpx.AsyncClient, story: Story) -> None:
    """Every request has its result, and every tick its end."""
    for folder, name in story.names:
        result = story.home / "data" / "ipc" / folder / "results" / name
        while not result.exists():  # noqa: ASYNC110  files tell nobody
            await asyncio.sleep(0.05)
    for task in (*story.ticking, *story.by_hand):
        while True:
            ticks = (await client.get(f"/api/tasks/{task}/ticks")).json()["data"]
            if ticks and all(tick["state"] not in ("due", "running") for tick in ticks):
                break
            await asyncio.sleep(0.2)


async def judge(host: Host, story: Story) -> None:
    words: dict[str, int] = {}
    answered = 0
    async with host.client() as client:
        async with asyncio.timeout(PATIENCE):
            await at_rest(client, story)
        for folder in FOLDERS:
            for message in await transcript(client, chat_of(folder)):
                for word in message["text"].split():
                    words[word] = words.get(word, 0) + message["is_bot"]
        tasks = (await client.get("/api/tasks")).json()["data"]
        groups = (await client.get("/api/groups")).json()["data"]
        for task, token in (story.ticking | story.by_hand).items():
            ticks = (await client.get(f"/api/tasks/{task}/ticks")).json()["data"]
            assert len(ticks) == 1, ticks
            has_run = ticks[0]["state"] in ("ran", "late")
            assert words.get(token, 0) == has_run, ticks
            answered += has_run
    assert {token: words.get(token, 0) for token in story.said} == dict.fromkeys(story.said, 1)
    # A tick whose runs were all cut short, ten of them, may end unanswered; most must not.
    assert answered > (TICKS + RUNS) // 2
    known = {task["id"]: task for task in tasks}
    assert {id_ for id_ in known if id_.startswith("task-cc-")} == story.scheduled
    assert story.cancelled
    for id_, juggled in story.juggled.items():
        assert (known[id_]["prompt"], known[id_]["status"]) == (juggled.prompt, juggled.status)
    assert {group["folder"] for group in groups} == {*FOLDERS, *story.registered}
    # Each of these would be refused the second time: the task is gone, the folder taken.
    refused = [
        (folder, name)
        for folder, name in story.names
        if not json.loads(_result(story, folder, name))["ok"]
    ]
    assert refused == []
    with contextlib.closing(sqlite3.connect(story.home / "hallporter.db")) as database:
        rows = database.execute("SELECT folder, name, COUNT(*) FROM commands GROUP BY 1, 2")
        assert sorted(rows) == sorted((folder, name, 1) for folder, name in story.names)


def _result(story: Story, folder: str, name: str) -> str:
    return (story.home / "data" / "ipc" / folder / "results" / name).read_text()


@pytest.mark.timeout(600)
async def test_under_kills_each_command_acts_once_and_each_tick_has_one_row_and_one_answer(
    tmp_path: Path,
) -> None:
    seed = int(os.environ.get("HALLPORTER_KILL_SEED") or random.SystemRandom().getrandbits(32))
    sys.stderr.write(f"HALLPORTER_KILL_SEED={seed}\n")
    home = tmp_path / "home"
    story = Story(dice=random.Random(seed), home=home)
    settings(
        home,
        f"""
        [host]
        log_level = "debug"
        max_concurrent_containers = 3
        [agent]
        kind = "command"
        command = ["{interpreter()}", "{LEDGER}"]
        """,
    )
    async with running(home) as host:
        await prepare(host, story)
    hits: Counter[str] = Counter()
    for number in range(1, COMMANDS // BURST + 1):
        point = POINTS[number % len(POINTS)]
        hits[point] += await one_round(story, point)
        if number % CALM_EVERY == 0:
            async with running(home):
                await asyncio.sleep(CALM)
    async with running(home) as host:
        await judge(host, story)
    assert all(hits[point] for point in POINTS), hits
    await no_process_left(story.home)
