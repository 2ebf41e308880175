"""One folder's rubbish, however much of it there is, hides nothing and costs nobody else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.command import Box
from hallporter.domain.ids import CommandId, Folder
from hallporter.mailroom.claims import Claim, Claims
from hallporter.mailroom.folders import Folders
from hallporter.mailroom.quarantine import MOST_EACH, REASON, Quarantine
from tests.fakes.ids import counting_id
from tests.mailroom.post import FAMILY, MAIN, WORK, Post, chat_of, names_in, open_post

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

HELLO = {"type": "message", "text": "hello"}
SCHEDULE = {
    "type": "schedule_task",
    "prompt": "water the plants",
    "schedule_type": "cron",
    "schedule_value": "0 9 * * *",
}
SNAPSHOT = "current_tasks.json"


async def test_no_number_of_other_names_hides_a_request(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    folders = Folders(tmp_path / "ipc")
    folders.prepare(FAMILY)
    box = folders.path(FAMILY, Box.MESSAGES)
    # Whatever the order in which they are found, some lie behind ten thousand others.
    for number in range(12_000):
        (box / (f"{number:05d}.json" if number % 400 == 0 else f"{number}.txt")).touch()
    claims = Claims(tmp_path / "claims", folders=folders, new_id=counting_id)

    taken = claims.take(FAMILY, Box.MESSAGES, 50)

    assert [claim.name for claim in taken.claims] == [
        f"{n:05d}.json" for n in range(0, 12_000, 400)
    ]
    assert not taken.is_more


def aside(quarantine: Quarantine, folder: str, number: int) -> None:
    claim = Claim(
        id=CommandId(f"c_{folder}_{number}"),
        folder=Folder(folder),
        box=Box.TASKS,
        name=f"{number:04d}.json",
        is_own_name=True,
        content=b"rubbish",
        problem="",
        path=quarantine._path,
    )
    quarantine.put(claim, "it is rubbish")


def kept(place: Path, folder: str) -> list[str]:
    return sorted(
        name for name in names_in(place) if name.startswith(folder) and not name.endswith(REASON)
    )


async def test_of_one_folder_so_much_is_put_aside_and_no_more(tmp_path: Path) -> None:
    quarantine = Quarantine(tmp_path)
    aside(quarantine, "work", 0)
    for number in range(MOST_EACH + 5):
        aside(quarantine, "family", number)

    assert kept(tmp_path, "work") == ["work-0000.json"]
    assert len(kept(tmp_path, "family")) == MOST_EACH
    assert kept(tmp_path, "family")[0] == "family-0005.json"


async def test_when_there_is_too_much_in_all_the_busiest_folder_gives_its_oldest(
    tmp_path: Path,
) -> None:
    for folder, count in (("a", 2), ("a-b", 5)):
        for number in range(count):
            aside(Quarantine(tmp_path, most=7), folder, number)

    aside(Quarantine(tmp_path, most=7), "c", 0)  # the next host knows whose they are

    assert kept(tmp_path, "a-0") == ["a-0000.json", "a-0001.json"]
    assert kept(tmp_path, "a-b") == [f"a-b-{number:04d}.json" for number in range(1, 5)]
    assert kept(tmp_path, "c") == ["c-0000.json"]


async def test_another_groups_id_looks_like_a_free_one(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        await post.task("morning", WORK)

        told = await post.answer(FAMILY, {**SCHEDULE, "taskId": "morning"})
        own = await post.answer(FAMILY, {**SCHEDULE, "taskId": told["task_id"]})
        main = await post.answer(MAIN, {**SCHEDULE, "taskId": "morning"})

        assert told["ok"]
        assert told["task_id"] != "morning"
        assert (own["ok"], main["ok"]) == (False, False)
        assert {(task.id, task.folder) for task in await post.all_tasks()} == {
            ("morning", WORK),
            (told["task_id"], FAMILY),
        }


async def test_what_is_too_large_is_told_to_its_agent(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        large = json.dumps({**HELLO, "text": "x" * (1 << 20)}).encode()

        told = await post.answer(FAMILY, large, box="messages")

        assert told == {"ok": False, "error": "it is larger than 1,048,576 bytes"}
        assert await post.said(chat_of(FAMILY)) == []


@pytest.mark.parametrize("name", [SNAPSHOT, f".{SNAPSHOT}.tmp"])
async def test_whatever_is_in_the_way_of_a_snapshot_goes(tmp_path: Path, name: str) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        await post.task("morning", FAMILY)
        spoil(post, name)

        await post.room.announce(await post.groups.get(FAMILY))

        assert [task["id"] for task in post.snapshot(FAMILY, SNAPSHOT)] == ["morning"]
        assert sorted(names_in(post.data / "ipc" / FAMILY)) == [
            "available_groups.json",
            "current_tasks.json",
            *("input", "messages", "results", "tasks"),
        ]


def spoil(post: Post, name: str) -> None:
    place = post.data / "ipc" / FAMILY / name
    (place / "deep" / "deeper").mkdir(parents=True)
    (place / "deep" / "file").touch()
    (place / "deep").chmod(0)
    place.chmod(0)
