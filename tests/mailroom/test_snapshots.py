"""What agents may know: written before each run and after every change, and no more than theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hallporter.agents.wording import stdin_of
from hallporter.switchboard.groups import GroupChange
from tests.agents.room import brief
from tests.mailroom.post import FAMILY, MAIN, WORK, Post, chat_of, open_post, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

TASKS, GROUPS = "current_tasks.json", "available_groups.json"
SCHEDULE = {
    "type": "schedule_task",
    "prompt": "water the plants",
    "schedule_type": "cron",
    "schedule_value": "0 9 * * *",
}


def ids(post: Post, folder: str) -> list[str]:
    try:
        return [task["id"] for task in post.snapshot(folder, TASKS)]
    except FileNotFoundError:
        return []


def jids(snapshot: dict[str, Any]) -> set[str]:
    return {entry["jid"] for entry in snapshot["groups"]}


@pytest.mark.requirement("snapshot.files.written-before-run")
@pytest.mark.requirement("snapshot.tasks.path")
@pytest.mark.requirement("snapshot.groups.path")
async def test_they_are_written_before_a_run_and_told_to_the_agent(tmp_path: Path) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        await post.task("task-1", FAMILY)
        told = await post.room.announce(await post.groups.get(FAMILY))
        assert json.loads(told.tasks) == post.snapshot(FAMILY, TASKS)
        assert json.loads(told.groups) == post.snapshot(FAMILY, GROUPS)
        for file in (TASKS, GROUPS):
            assert (post.data / "ipc" / FAMILY / file).stat().st_mode & 0o777 == 0o644


@pytest.mark.requirement("snapshot.tasks.main-sees-all")
@pytest.mark.requirement("snapshot.tasks.others-see-own")
async def test_main_sees_all_tasks_and_others_their_own(tmp_path: Path) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        for folder in (MAIN, FAMILY, WORK):
            await post.task(f"task-of-{folder}", folder)
        for folder in (MAIN, FAMILY, WORK):
            await post.room.announce(await post.groups.get(folder))
        assert set(ids(post, MAIN)) == {"task-of-main", "task-of-family", "task-of-work"}
        assert ids(post, FAMILY) == ["task-of-family"]
        assert ids(post, WORK) == ["task-of-work"]


async def test_main_sees_the_beginning_of_others_long_prompts_and_all_of_its_own(
    tmp_path: Path,
) -> None:
    async with open_post(tmp_path) as post:
        for folder in (MAIN, FAMILY):
            await post.answer(folder, {**SCHEDULE, "prompt": "x" * 5000})
        for folder in (MAIN, FAMILY):
            await post.room.announce(await post.groups.get(folder))
        seen = {task["groupFolder"]: task["prompt"] for task in post.snapshot(MAIN, TASKS)}
        assert seen == {MAIN: "x" * 5000, FAMILY: "x" * 999 + "…"}
        assert post.snapshot(FAMILY, TASKS)[0]["prompt"] == "x" * 5000


@pytest.mark.requirement("snapshot.groups.main-sees-all")
@pytest.mark.requirement("snapshot.groups.others-see-own")
async def test_main_sees_all_known_chats_and_others_their_own(tmp_path: Path) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        await post.channel_hears("fake:seen")
        for folder in (MAIN, FAMILY):
            await post.room.announce(await post.groups.get(folder))
        seen = post.snapshot(MAIN, GROUPS)
        assert jids(seen) == {"fake:main", "fake:family", "fake:work", "fake:seen"}
        unregistered = next(one for one in seen["groups"] if one["jid"] == "fake:seen")
        assert not unregistered["isRegistered"]
        assert unregistered["folder"] is None
        assert jids(post.snapshot(FAMILY, GROUPS)) == {"fake:family"}


@pytest.mark.requirement("container.stdin.is-main")
@pytest.mark.requirement("container.stdin.groups-snapshot")
async def test_main_is_told_so_on_stdin_with_all_groups_and_others_with_their_own(
    tmp_path: Path,
) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        told = {}
        for folder in (MAIN, FAMILY):
            group = await post.groups.get(folder)
            snapshots = await post.room.announce(group)
            given = replace(brief("hello"), group=group, snapshots=snapshots)
            told[folder] = json.loads(stdin_of(given))
    assert (told[MAIN]["isMain"], told[FAMILY]["isMain"]) == (True, False)
    assert jids(json.loads(told[MAIN]["groupsSnapshot"])) == {
        *("fake:main", "fake:family", "fake:work")
    }
    assert jids(json.loads(told[FAMILY]["groupsSnapshot"])) == {"fake:family"}


async def test_who_has_scheduled_finds_it_there_when_the_result_comes(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        told: dict[str, Any] = {}
        for number in range(5):
            told = await post.answer(FAMILY, SCHEDULE)
            assert told["task_id"] in ids(post, FAMILY)
            assert len(ids(post, FAMILY)) == number + 1
        await post.answer(FAMILY, {"type": "cancel_task", "task_id": told["task_id"]})
        assert told["task_id"] not in ids(post, FAMILY)


async def test_main_hears_soon_of_what_others_have_done(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        told = await post.answer(FAMILY, SCHEDULE)
        await post.soon(lambda: ids(post, MAIN) == [told["task_id"]])
        await post.tasks.act(post.tasks.cancel, told["task_id"])
        await post.soon(lambda: not ids(post, MAIN) and not ids(post, FAMILY))
        assert ids(post, WORK) == []


async def test_who_is_no_longer_main_must_forget_what_main_knew(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        await post.task("task-of-work", WORK)
        await post.soon(lambda: ids(post, MAIN) == ["task-of-work"])
        await post.groups.change(FAMILY, GroupChange(is_main=True))
        await post.soon(lambda: ids(post, FAMILY) == ["task-of-work"])
        await post.soon(lambda: not ids(post, MAIN))
        assert jids(post.snapshot(MAIN, GROUPS)) == {"fake:main"}


@pytest.mark.requirement("ipc.refresh.resyncs-from-network")
async def test_a_refresh_asks_the_networks_and_then_tells_main(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:

        async def discover() -> None:
            await post.channel_hears("fake:found")

        post.channel.discoverer = discover
        told = await post.answer(MAIN, {"type": "refresh_groups", "groupFolder": MAIN})
        assert told["ok"]
        assert "fake:found" in jids(post.snapshot(MAIN, GROUPS))

        async def fail() -> None:
            raise ConnectionError("the network is away")

        post.channel.discoverer = fail
        assert (await post.answer(MAIN, {"type": "refresh_groups"}))["ok"]


async def test_a_spoilt_folder_costs_an_agent_its_files_and_no_turn(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        await post.task("task-1", FAMILY)
        await post.soon(lambda: ids(post, FAMILY))
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text("precious")
        for file in (TASKS, GROUPS):
            place = post.data / "ipc" / FAMILY / file
            place.unlink()
            place.symlink_to(elsewhere)
            (place.parent / f".{file}.tmp").symlink_to(elsewhere)
        await post.room.announce(await post.groups.get(FAMILY))
        assert ids(post, FAMILY) == ["task-1"]
        assert elsewhere.read_text() == "precious"

        (post.data / "ipc" / FAMILY / TASKS).unlink()
        (post.data / "ipc" / FAMILY / TASKS / "inner").mkdir(parents=True)
        told = await post.room.announce(await post.groups.get(FAMILY))
        assert [task["id"] for task in json.loads(told.tasks)] == ["task-1"]


@pytest.mark.requirement("ipc.register.takes-effect-at-once")
async def test_a_group_that_main_registers_is_heard_and_shown_at_once(tmp_path: Path) -> None:
    wish = {"type": "register_group", "jid": "fake:club", "name": "Club", "folder": "club"}
    async with open_post(tmp_path) as post:
        told = await post.answer(MAIN, {**wish, "trigger": "@Andy", "assistant_name": "Bo"})
        assert told == {"ok": True, "folder": "club", "jid": "fake:club"}
        known = post.snapshot(MAIN, GROUPS)["groups"]
        club = next(one for one in known if one["jid"] == "fake:club")
        assert (club["isRegistered"], club["folder"]) == (True, "club")
        await until(post.box("club", "messages").is_dir)
        assert (await post.answer("club", {"type": "message", "text": "hello"}))["ok"]
        assert await post.said(chat_of("club")) == ["hello"]

        again = await post.answer(MAIN, wish)
        assert "taken" in again["error"] or "registered already" in again["error"]
