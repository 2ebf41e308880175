"""The privilege matrix: every command, asked by main, for oneself, for another, by nobody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.mailroom.post import FAMILY, MAIN, STRANGER, WORK, Post, chat_of, open_post

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

TASK = "task-of-work"
OWN_TASK = "task-of-family"
NEW_CHAT = "fake:club"
FOUND = "fake:found"  # what the network tells of when it is asked
DIALECTS = ("000", "001")


@dataclass(frozen=True)
class Row:
    """`asker` asks for `command`, about `about`."""

    command: str
    asker: str
    about: str
    refusal: str = ""  # what the agent is told, if it may not


def request(row: Row, dialect: str) -> dict[str, Any]:
    """In the words of one of the documents."""
    task = TASK if row.about == WORK else OWN_TASK
    fields: dict[str, Any] = {"type": row.command}
    match row.command:
        case "message":
            fields |= {"text": "hello"}
            target = {"000": "chatJid", "001": "target_jid"}
        case "schedule_task":
            fields |= {"prompt": "look around", "schedule_type": "interval"}
            fields |= {"schedule_value": "60000", "context_mode": "isolated"}
            target = {"000": "chatJid", "001": "target_group_jid"}
        case "register_group":
            fields |= {"jid": NEW_CHAT, "name": "Club", "folder": "club"}
            fields |= {"trigger_pattern" if dialect == "000" else "trigger": "@Andy"}
            fields |= {"requires_trigger": False}
            target = {}
        case "refresh_groups":
            target = {}
        case _:
            fields |= {"task_id": task}
            if row.command == "update_task":
                fields |= {"schedule_value": "0 10 * * *"}
            target = {}
    if target:
        fields[target[dialect]] = chat_of(row.about)
    if dialect == "000":
        if not row.refusal and row.command not in ("message", "register_group"):
            # There every request about tasks names the owning group.
            fields["group_folder"] = MAIN if row.command == "refresh_groups" else row.about
        return {camel(name): value for name, value in fields.items()}
    return fields


def camel(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


async def state(post: Post) -> object:
    """All that a command could have changed."""
    chats = [chat_of(folder) for folder in (MAIN, FAMILY, WORK)]
    groups = await post.groups.all()
    ticks = [await post.tasks.ticks(task, 10) for task in (TASK, OWN_TASK)]
    return [await post.said(chat) for chat in chats], await post.all_tasks(), groups, ticks


async def judge_effect(post: Post, row: Row) -> None:
    """The one thing it asked for has happened, and to the one it named."""
    task = TASK if row.about == WORK else OWN_TASK
    match row.command:
        case "message":
            assert await post.said(chat_of(row.about)) == ["hello"]
        case "schedule_task":
            made = [t for t in await post.all_tasks() if t.prompt == "look around"]
            assert [(t.folder, t.chat) for t in made] == [(row.about, chat_of(row.about))]
            assert made[0].created_by == row.asker
        case "update_task":
            assert (await post.tasks.get(task)).schedule.value == "0 10 * * *"
        case "pause_task":
            assert (await post.tasks.get(task)).status == "paused"
        case "resume_task":
            assert (await post.tasks.get(task)).status == "active"
        case "cancel_task":
            assert task not in [t.id for t in await post.all_tasks()]
        case "run_task":
            assert len(await post.tasks.ticks(task, 10)) == 1
        case "register_group":
            assert (await post.groups.get("club")).chat == NEW_CHAT
        case "refresh_groups":
            known = post.snapshot(MAIN, "available_groups.json")["groups"]
            assert FOUND in [one["jid"] for one in known]


OWN_CHAT = "own chat only"
OWN_TASKS = f"this group has no task '{TASK}'"
MAIN_ONLY = "only the main group may"

ROWS = [
    pytest.param(
        Row("message", MAIN, WORK), marks=pytest.mark.requirement("ipc.message.main-any-chat")
    ),
    pytest.param(
        Row("message", FAMILY, FAMILY),
        marks=pytest.mark.requirement("ipc.message.sends-to-chat"),
    ),
    pytest.param(
        Row("message", FAMILY, WORK, OWN_CHAT),
        marks=[
            pytest.mark.requirement("ipc.message.own-chat-only"),
            pytest.mark.requirement("ipc.message.cross-group-refused"),
        ],
    ),
    pytest.param(
        Row("schedule_task", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.schedule.main-any-group"),
    ),
    pytest.param(
        Row("schedule_task", FAMILY, FAMILY),
        marks=pytest.mark.requirement("ipc.schedule.creates-task"),
    ),
    pytest.param(
        Row("schedule_task", FAMILY, WORK, OWN_CHAT),
        marks=pytest.mark.requirement("ipc.schedule.own-group-only"),
    ),
    pytest.param(
        Row("update_task", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.control.main-any-task"),
    ),
    pytest.param(
        Row("update_task", FAMILY, FAMILY),
        marks=pytest.mark.requirement("ipc.control.changes-task"),
    ),
    pytest.param(
        Row("update_task", FAMILY, WORK, OWN_TASKS),
        marks=pytest.mark.requirement("ipc.control.own-tasks-only"),
    ),
    pytest.param(
        Row("pause_task", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.control.main-any-task"),
    ),
    pytest.param(
        Row("pause_task", FAMILY, FAMILY),
        marks=pytest.mark.requirement("ipc.control.changes-task"),
    ),
    pytest.param(
        Row("pause_task", FAMILY, WORK, OWN_TASKS),
        marks=pytest.mark.requirement("ipc.control.own-tasks-only"),
    ),
    pytest.param(
        Row("resume_task", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.control.main-any-task"),
    ),
    pytest.param(
        Row("resume_task", FAMILY, FAMILY),
        marks=pytest.mark.requirement("ipc.control.changes-task"),
    ),
    pytest.param(
        Row("resume_task", FAMILY, WORK, OWN_TASKS),
        marks=pytest.mark.requirement("ipc.control.own-tasks-only"),
    ),
    pytest.param(
        Row("cancel_task", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.control.main-any-task"),
    ),
    pytest.param(
        Row("cancel_task", FAMILY, FAMILY),
        marks=pytest.mark.requirement("ipc.control.changes-task"),
    ),
    pytest.param(
        Row("cancel_task", FAMILY, WORK, OWN_TASKS),
        marks=pytest.mark.requirement("ipc.control.own-tasks-only"),
    ),
    pytest.param(
        Row("run_task", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.control.main-any-task"),
    ),
    pytest.param(
        Row("run_task", FAMILY, FAMILY),
        marks=pytest.mark.requirement("ipc.control.changes-task"),
    ),
    pytest.param(
        Row("run_task", FAMILY, WORK, OWN_TASKS),
        marks=pytest.mark.requirement("ipc.control.own-tasks-only"),
    ),
    pytest.param(
        Row("register_group", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.register.takes-effect-at-once"),
    ),
    pytest.param(
        Row("register_group", FAMILY, FAMILY, MAIN_ONLY),
        marks=[
            pytest.mark.requirement("ipc.register.main-only"),
            pytest.mark.requirement("ipc.register.pre-authorised-folders"),
        ],
    ),
    pytest.param(
        Row("register_group", FAMILY, WORK, MAIN_ONLY),
        marks=pytest.mark.requirement("ipc.register.main-only"),
    ),
    pytest.param(
        Row("refresh_groups", MAIN, WORK),
        marks=pytest.mark.requirement("ipc.refresh.reloads-from-store"),
    ),
    pytest.param(
        Row("refresh_groups", FAMILY, FAMILY, MAIN_ONLY),
        marks=pytest.mark.requirement("ipc.refresh.main-only"),
    ),
    pytest.param(
        Row("refresh_groups", FAMILY, WORK, MAIN_ONLY),
        marks=pytest.mark.requirement("ipc.refresh.main-only"),
    ),
]
COMMANDS = sorted({row.values[0].command for row in ROWS})  # type: ignore[union-attr]


async def prepare(post: Post, row: Row) -> None:
    async def discover() -> None:
        await post.channel_hears(FOUND)

    post.channel.discoverer = discover
    for id_, folder in ((TASK, WORK), (OWN_TASK, FAMILY)):
        await post.task(id_, folder)
        if row.command == "resume_task":
            await post.tasks.act(post.tasks.pause, id_)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.command}-{row.asker}-{row.about}")
async def test_a_command_does_what_its_asker_may(tmp_path: Path, row: Row, dialect: str) -> None:
    async with open_post(tmp_path) as post:
        await prepare(post, row)
        before = await state(post)

        told = await post.answer(row.asker, request(row, dialect))

        assert (told["ok"], row.refusal in told.get("error", "")) == (not row.refusal, True), told
        if row.refusal:
            assert await state(post) == before
        else:
            await judge_effect(post, row)
        records = await post.store.read(lambda tx: tx.commands.all(None, 10))
        kept = [(r.folder, r.kind, r.is_ok) for r in records]
        assert kept == [(row.asker, row.command, not row.refusal)]
        assert post.put_aside() == {}


@pytest.mark.requirement("ipc.request.folder-matches")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_nothing_is_done_for_the_folder_of_no_group(
    tmp_path: Path, command: str, dialect: str
) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        row = Row(command, STRANGER, FAMILY)
        await prepare(post, row)
        before = await state(post)
        for box in ("messages", "tasks", "results"):
            post.box(STRANGER, box).mkdir(parents=True)
        name = post.ask(STRANGER, request(row, dialect) | {"groupFolder": MAIN})

    async with open_post(tmp_path) as post:
        await post.quiet()
        assert post.put_aside() == {
            f"{STRANGER}-{name}": f"the folder '{STRANGER}' belongs to no group"
        }
        assert post.result(STRANGER, name) is None
        assert await state(post) == before


@pytest.mark.requirement("ipc.request.folder-matches")
@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"message", "register_group"}))
async def test_who_asks_is_the_folder_and_never_what_the_file_says(
    tmp_path: Path, command: str
) -> None:
    row = Row(command, FAMILY, FAMILY)
    async with open_post(tmp_path) as post:
        await prepare(post, row)
        before = await state(post)
        told = await post.answer(FAMILY, request(row, "000") | {"groupFolder": MAIN})
        assert not told["ok"]
        assert re.search("not this group's|only the main group", told["error"])
        assert await state(post) == before


@pytest.mark.parametrize("command", ["update_task", "pause_task", "cancel_task", "run_task"])
async def test_anothers_task_and_one_that_is_not_there_look_the_same(
    tmp_path: Path, command: str
) -> None:
    async with open_post(tmp_path) as post:
        await post.task(TASK, WORK)
        told = [
            await post.answer(FAMILY, {"type": command, "task_id": id_})
            for id_ in (TASK, "task-of-worm")
        ]
        assert [one["error"].replace("worm", "work") for one in told] == [told[0]["error"]] * 2


async def test_anothers_chat_and_one_that_is_not_there_look_the_same(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        for request_ in (
            {"type": "message", "text": "psst"},
            {
                "type": "schedule_task",
                "prompt": "psst",
                "schedule_type": "interval",
                "schedule_value": 60000,
            },
        ):
            told = [
                await post.answer(FAMILY, {**request_, "targetJid": chat})
                for chat in (chat_of(WORK), "fake:nobody")
            ]
            assert told[0] == told[1]
            assert not told[0]["ok"]


@pytest.mark.requirement("ipc.request.folder-matches")
async def test_another_folder_is_the_target_when_main_asks(tmp_path: Path) -> None:
    schedule = {
        "type": "schedule_task",
        "prompt": "look around",
        "schedule_type": "interval",
        "schedule_value": "60000",
    }
    async with open_post(tmp_path) as post:
        told = await post.answer(MAIN, {**schedule, "groupFolder": WORK})
        assert told["ok"]
        assert [task.folder for task in await post.all_tasks()] == [WORK]

        for groups in (
            {"groupFolder": WORK, "chatJid": chat_of(FAMILY)},
            {"groupFolder": "nowhere"},
            {"chatJid": "fake:nobody"},
        ):
            assert not (await post.answer(MAIN, {**schedule, **groups}))["ok"]
        told = await post.answer(
            MAIN, {"type": "pause_task", "taskId": told["taskId"], "groupFolder": FAMILY}
        )
        assert "the group 'family' has no task" in told["error"]


async def test_main_may_write_to_a_chat_that_was_only_seen_and_to_no_invented_one(
    tmp_path: Path,
) -> None:
    async with open_post(tmp_path) as post:
        await post.channel_hears("fake:seen")
        told = await post.answer(MAIN, {"type": "message", "text": "hi", "target_jid": "fake:seen"})
        assert told["ok"]
        assert await post.said("fake:seen") == ["hi"]
        told = await post.answer(
            MAIN, {"type": "message", "text": "hi", "target_jid": "fake:invented"}
        )
        assert "no chat 'fake:invented' is known" in told["error"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"agent": {"sandbox": "process"}}, "'sandbox'"),
        ({"agent": {"kind": "command", "command": ["sh"]}}, "'command', 'kind'"),
        ({"containerConfig": {"additionalMounts": [{"hostPath": "/"}]}}, "'additionalMounts'"),
        ({"mounts": ["/"]}, "'mounts'"),
        ({"isMain": True}, "'is_main'"),
        ({"senders": []}, "'senders'"),
    ],
)
async def test_main_cannot_set_what_would_open_a_sandbox(
    tmp_path: Path, settings: dict[str, Any], named: str
) -> None:
    wish = {"type": "register_group", "jid": NEW_CHAT, "name": "Club", "folder": "club"}
    async with open_post(tmp_path) as post:
        told = await post.answer(MAIN, {**wish, **settings})
        assert f"an agent may not set {named}" in told["error"]
        assert "club" not in [group.folder for group in await post.groups.all()]


async def test_main_may_set_how_long_an_agent_may_take(tmp_path: Path) -> None:
    wish = {"type": "register_group", "jid": NEW_CHAT, "name": "Club", "folder": "club"}
    async with open_post(tmp_path) as post:
        told = await post.answer(
            MAIN, {**wish, "triggerPattern": "@Bo", "containerConfig": {"timeout": 90_000}}
        )
        assert told["ok"], told
        group = await post.groups.get("club")
        assert (group.trigger, group.requires_trigger) == ("@Bo", True)
        assert group.agent["timeout"] in (90, "90s", 90.0)


@pytest.mark.requirement("task.cancel.deletes-history")
async def test_a_cancelled_task_takes_its_ticks_along_and_the_record_says_who_cancelled_it(
    tmp_path: Path,
) -> None:
    async with open_post(tmp_path) as post:
        task = await post.task(TASK, FAMILY)
        assert (await post.answer(FAMILY, {"type": "run_task", "task_id": TASK}))["ok"]
        assert await post.store.read(lambda tx: tx.tasks.ticks(task.id, 10))

        assert (await post.answer(FAMILY, {"type": "cancel_task", "task_id": TASK}))["ok"]

        assert not await post.store.read(lambda tx: tx.tasks.ticks(task.id, 10))
        newest, *_ = await post.store.read(lambda tx: tx.commands.all(FAMILY, 10))
        assert (newest.kind, newest.is_ok, newest.result["task_id"]) == ("cancel_task", True, TASK)
