"""Ten thousand files that nobody in their right mind would write: none does harm."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import strategies as st

from hallporter.mailroom.quarantine import MOST_EACH
from tests.mailroom.post import MAIN, STRANGER, WORK, Post, chat_of, names_in, open_post

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.anyio

ATTACKERS = tuple(f"attacker{number}" for number in range(19))
ROUNDS = 21
A_ROUND = 500  # files
TREASURE = "task-of-work"

VALUES: list[Any] = [
    *("", " ", "hello", "\x00", "\ud800", "\u202e", "../../etc/passwd", "a" * 70_000),
    *("<internal>x", "{}", "main", "work", "WORK", "fake:work", "fake:main", "fake:nobody"),
    *(TREASURE, "task-mine", "cron", "interval", "once", "0 9 * * *", "60000", "99999999999999"),
    *("* * * * * *", "@daily", "0 0 31 2 *", "2099-01-01T00:00:00", "2099-01-01T00:00:00Z"),
    *("Europe/Berlin", "Mars/Crater", "group", "isolated", "once", "skip", "all", "@Andy", "((("),
    *(None, True, False, 0, -1, 1.5, 10**30, float("nan"), float("inf"), [], {}, [[]], {"a": {}}),
    *({"sandbox": "process"}, {"command": ["sh"]}, {"timeout": float("nan")}, {"timeout": -1}),
]
KINDS = (
    *("message", "schedule_task", "update_task", "pause_task", "resume_task", "cancel_task"),
    *("run_task", "register_group", "refresh_groups", "invoke_tool", "dance", ""),
)
FIELDS = (
    *("text", "sender", "file", "prompt", "timezone", "misfire", "jid", "name", "folder"),
    *("targetJid", "target_group_jid", "target_jid", "chatJid", "chat_jid", "groupFolder"),
    *("group_folder", "taskId", "task_id", "id", "scheduleType", "schedule_type"),
    *("scheduleValue", "schedule_value", "contextMode", "context_mode", "trigger"),
    *("triggerPattern", "requiresTrigger", "requires_trigger", "assistantName", "agent"),
    *("containerConfig", "isMain", "mounts", "timestamp", "__proto__"),
)


def treasure_of(folder: str) -> str:
    return f"task-of-{folder}"


def sound(dice: random.Random, asker: str) -> dict[str, Any]:
    """A request that could be carried out, if its asker were who it claims to be."""
    victim = dice.choice((MAIN, WORK, *(one for one in ATTACKERS if one != asker)))
    words = f"boo of {asker}!"
    target = dice.choice(("targetJid", "target_group_jid", "target_jid", "chatJid"))
    match dice.randrange(5):
        case 0:
            return {"type": "message", "text": words, target: chat_of(victim)}
        case 1:
            return {
                "type": "schedule_task",
                "prompt": words,
                "schedule_type": "interval",
                "schedule_value": "1000",
                target: chat_of(victim),
                "groupFolder": victim,
            }
        case 2:
            kind = dice.choice(KINDS[2:7])
            whose = dice.choice((victim, asker))
            fields = {"taskId": treasure_of(victim), "groupFolder": whose, "prompt": words}
            return {"type": kind, **fields}
        case 3:
            return {"type": "register_group", "jid": "fake:x", "name": "X", "folder": "x"}
        case _:
            return {"type": "refresh_groups", "groupFolder": MAIN}


def content(dice: random.Random, asker: str) -> bytes:
    request = sound(dice, asker)
    for _ in range(dice.choice((0, 0, 1, 3))):
        request[dice.choice(FIELDS)] = dice.choice(VALUES)
    if dice.random() < 0.1:
        request["type"] = dice.choice(KINDS)
    data = json.dumps(request).encode()
    match dice.randrange(12):
        case 0:
            return data[: dice.randrange(len(data))]
        case 1:
            return dice.randbytes(dice.randrange(200))
        case 2:
            return data.replace(b'"', dice.choice((b"'", b'""', b"\x00", b"\xff")))
        case 3:
            return b"[" * dice.choice((10, 100_000)) + data
        case 4:
            return data + data
        case 5:
            return b'{"type": "message", "text": ' + b"9" * dice.choice((400, 5000)) + b"}"
    return data


def name(dice: random.Random, number: int) -> bytes:
    match dice.randrange(20):
        case 0:
            return b"%05d\xff.json" % number
        case 1:
            return b"%05d\n.json" % number
        case 2:
            return b"%05d" % number + b"n" * dice.choice((100, 240)) + b".json"
        case 3:
            return f"{number:05d} ~ü'\"$(x).json".encode()
    return b"%05d.json" % number


def leave(dice: random.Random, box: Path, name: bytes, elsewhere: Path) -> None:
    """Mostly a file, sometimes something else, in a box of its asker's."""
    aside = box / ".aside"
    match dice.randrange(25):
        case 0:
            aside.symlink_to(elsewhere / "secret.json")
        case 1:
            (aside / "x").mkdir(parents=True)
        case 2:
            os.mkfifo(aside)
        case 3:
            os.link(elsewhere / "secret.json", aside)
        case 4:
            with aside.open("wb") as file:
                file.truncate(1 << 21)
        case _:
            aside.write_bytes(content(dice, box.parent.name))
    aside.rename(box / os.fsdecode(name))


async def quiet(post: Post) -> None:
    async with asyncio.timeout(30):
        while post.lying() or post.claimed():  # noqa: ASYNC110  files tell nobody
            await asyncio.sleep(0.1)


def judge_files(post: Post, asked: Sequence[tuple[str, bytes]]) -> None:
    """Each has a result or a record; the operator looks through the records and deletes them."""
    errors = post.data / "ipc" / "errors"
    reasons = post.put_aside()
    assert all(reasons.values())
    results = {folder: set(names_in(post.box(folder, "results"))) for folder, _ in asked}
    unanswered = [
        (folder, name) for folder, name in asked if os.fsdecode(name) not in results[folder]
    ]
    plain = {f"{folder}-{os.fsdecode(name)}" for folder, name in unanswered}
    odd = [one for one in plain if one not in reasons]
    assert len(plain) == len(unanswered)
    unnamed = [why for why in reasons.values() if "its name cannot be used" in why]
    others = [one for one in reasons if one not in plain]
    assert len(odd) <= len(others), (odd, others)
    assert unnamed or not odd
    for file in errors.iterdir():
        file.unlink()


async def state(post: Post) -> object:
    """What belongs to others than the attackers."""
    tasks = [task for task in await post.all_tasks() if task.folder in (MAIN, WORK)]
    ticks = await post.tasks.ticks(TREASURE, 10)
    groups = await post.groups.all()
    said = [await post.said(chat_of(folder)) for folder in (MAIN, WORK)]
    return tasks, ticks, groups, said


async def judge_attackers(post: Post) -> None:
    """What they ask for happens to themselves, and each keeps its treasure."""
    tasks = await post.all_tasks()
    treasures = {task.id: task for task in tasks if task.prompt == "water the plants"}
    assert set(treasures) == set(map(treasure_of, (WORK, *ATTACKERS)))
    for task in treasures.values():
        assert task.status == "active"
        assert not await post.tasks.ticks(task.id, 10)
    made = [task for task in tasks if task.id not in treasures]
    assert [task for task in made if task.created_by != task.folder] == []
    for folder in ATTACKERS:
        words = [*await post.said(chat_of(folder)), *(t.prompt for t in made if t.folder == folder)]
        askers = {found for text in words for found in re.findall(r"boo of (\w+)!", text)}
        assert askers <= {folder}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "secret.json").write_text('{"type": "message", "text": "a secret"}')
    return place


@pytest.mark.timeout(300)
async def test_ten_thousand_files_cross_no_group_and_each_has_its_end(
    tmp_path: Path, elsewhere: Path
) -> None:
    seed = int(os.environ.get("HALLPORTER_FILES_SEED") or random.SystemRandom().getrandbits(32))
    sys.stderr.write(f"HALLPORTER_FILES_SEED={seed}\n")
    dice = random.Random(seed)
    total = 0
    async with open_post(tmp_path, groups=(WORK, *ATTACKERS)) as post:
        for folder in (WORK, *ATTACKERS):
            await post.task(treasure_of(folder), folder)
        before = await state(post)
        for _ in range(ROUNDS):
            asked = []
            for _ in range(A_ROUND):
                folder = dice.choice(ATTACKERS)
                asked.append((folder, name(dice, total)))
                box = dice.choice(("messages", "tasks"))
                leave(dice, post.box(folder, box), asked[-1][1], elsewhere)
                total += 1
            await quiet(post)
            judge_files(post, asked)
            assert await state(post) == before
        await judge_attackers(post)
        assert total >= 10_000
        # The host is still there for those who know how to ask.
        told = await post.answer(WORK, {"type": "message", "text": "still here"})
        assert told["ok"]
    assert (elsewhere / "secret.json").read_text() == '{"type": "message", "text": "a secret"}'


async def test_files_of_no_group_end_as_records(tmp_path: Path, elsewhere: Path) -> None:
    dice = random.Random(7)
    for box in ("messages", "tasks", "results"):
        (tmp_path / "data" / "ipc" / STRANGER / box).mkdir(parents=True)
    asked = [(STRANGER, name(dice, number)) for number in range(MOST_EACH)]
    for _, file in asked:
        leave(dice, tmp_path / "data" / "ipc" / STRANGER / "tasks", file, elsewhere)
    async with open_post(tmp_path) as post:
        before = await state_of_all(post)
        await quiet(post)
        assert await state_of_all(post) == before
        judge_files(post, asked)


async def state_of_all(post: Post) -> object:
    return await post.all_tasks(), await post.groups.all()


async def test_what_main_may_write_brings_no_host_down(tmp_path: Path, elsewhere: Path) -> None:
    dice = random.Random(11)
    asked = []
    async with open_post(tmp_path) as post:
        for number in range(500):
            asked.append((MAIN, name(dice, number)))
            box = post.box(MAIN, dice.choice(("messages", "tasks")))
            leave(dice, box, asked[-1][1], elsewhere)
        await quiet(post)
        judge_files(post, asked)
        assert (await post.answer(WORK, {"type": "message", "text": "hello"}))["ok"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
requests = st.one_of(
    st.binary(max_size=200),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries(
        {"type": st.sampled_from(KINDS)},
        optional=dict.fromkeys(FIELDS, json_values),
    ).map(lambda value: json.dumps(value).encode()),
)


@hypothesis.settings(
    max_examples=25,
    suppress_health_check=[
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.data_too_large,
    ],
)
@hypothesis.given(files=st.lists(requests, min_size=1, max_size=30))
async def test_whatever_an_agent_writes_has_an_end_and_touches_nobody_else(
    tmp_path_factory: pytest.TempPathFactory, files: list[bytes]
) -> None:
    async with open_post(tmp_path_factory.mktemp("post"), groups=(WORK, "attacker0")) as post:
        await post.task(TREASURE, WORK)
        before = await state(post)
        asked = []
        for number, data in enumerate(files):
            box = ("messages", "tasks")[number % 2]
            asked.append(("attacker0", post.ask("attacker0", data, box=box).encode()))
        await quiet(post)
        judge_files(post, asked)
        assert await state(post) == before
