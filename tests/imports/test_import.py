"""A home of NanoClaw's that was lived in moves in: all of it, once, and the source is only read."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.imports.home import FAMILY, MAIN, WEB, empty, kept, lived_in, picture
from tests.imports.house import House, counted, open_house, remarks

NOUNS = ["chats", "groups", "allow_lists", "files", "sessions", "messages", "tasks", "ticks"]
ALL = {"chats": 4, "groups": 3, "files": 6, "sessions": 1, "messages": 11, "tasks": 4, "ticks": 2}
DAILY = "task-1767000000000-abc123"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path / "home") as opened:
        yield opened


async def test_everything_is_carried_over_and_the_source_is_only_read(
    tmp_path: Path, house: House
) -> None:
    source = lived_in(tmp_path)
    before = picture(source.path)
    report = await house.move_in(source)
    assert picture(source.path) == before
    assert list(report["counts"]) == NOUNS
    assert counted(report, "carried") == ALL
    assert (counted(report, "there"), counted(report, "skipped")) == ({}, {})
    groups = await house.groups()
    assert list(groups) == [MAIN, FAMILY, WEB]
    assert (groups[MAIN]["folder"], groups[MAIN]["is_main"]) == ("main", True)
    assert (groups[FAMILY]["folder"], groups[FAMILY]["name"]) == ("family-chat", "Family 👪")
    assert (groups[FAMILY]["trigger"], groups[FAMILY]["requires_trigger"]) == ("@Andy", True)
    assert groups[WEB]["requires_trigger"] is False
    known = {chat["chat"]: chat for chat in (await house.get("/api/chats"))["data"]}
    assert known["120363049999999999@g.us"]["name"] == "Never registered"
    assert known[FAMILY]["channel"] == "whatsapp"
    assert "__group_sync__" not in known


async def test_tasks_keep_their_ids_and_history_and_get_our_next_times(
    tmp_path: Path, house: House
) -> None:
    await house.move_in(lived_in(tmp_path))
    tasks = await house.tasks()
    daily = tasks[DAILY]
    assert (daily["group"], daily["chat"], daily["context_mode"]) == (
        *("family-chat", FAMILY),
        "group",
    )
    assert (daily["schedule_value"], daily["timezone"]) == ("0 9 * * 1-5", "Europe/Berlin")
    assert daily["last_run"] == "2026-01-30T09:00:05.200000Z"
    assert daily["next_run"] == "2026-02-20T08:00:00Z"
    # On the grid that it had; the column's default, where nothing was said, is isolated.
    assert tasks["task-2"]["next_run"] == "2026-02-19T10:10:00Z"
    assert tasks["task-2"]["context_mode"] == "isolated"
    assert (tasks["task-3"]["status"], tasks["task-3"]["next_run"]) == ("completed", None)
    assert (tasks["task-4"]["status"], tasks["task-4"]["next_run"]) == ("paused", None)
    ticks = (await house.get(f"/api/tasks/{DAILY}/ticks"))["data"]
    assert [(tick["due"], tick["state"], tick["why"]) for tick in ticks] == [
        ("2026-01-30T09:00:05.200000Z", "failed", "the model was away"),
        ("2026-01-29T09:00:05.200000Z", "ran", "imported from NanoClaw, took 5.2 s"),
    ]


async def test_the_history_keeps_its_ids_and_order_and_lies_below_the_cursor(
    tmp_path: Path, house: House
) -> None:
    await house.move_in(lived_in(tmp_path))
    assert await house.said(MAIN) == [
        "hello",
        "first of the second",
        "second of the second",
        "Andy: hi there",
    ]
    for chat, count in ((MAIN, 4), (FAMILY, 6), (WEB, 1)):
        standing = await house.chat(chat)
        assert (standing.head, standing.cursor, standing.woken_at) == (count, count, None)

    async def fate(name: str) -> tuple[str, str, str]:
        told = await house.get(f"/api/messages/{name}/fate")
        return told["state"], told["steps"][-1]["what"], told["steps"][-1]["why"]

    assert await fate("3EB0ZZ") == (
        *("answered", "kept as context"),
        "imported from NanoClaw, whose agent had it",
    )
    assert await fate("3EB0B1") == ("sent", "written by the agent", "imported from NanoClaw")
    state, _, why = await fate("F9")
    assert (state, "nothing old is answered" in why) == ("ignored", True)


async def test_a_session_goes_on_where_what_the_agent_remembered_came_along(
    tmp_path: Path, house: House
) -> None:
    report = await house.move_in(lived_in(tmp_path))
    assert (await house.chat(MAIN)).session_id == "0f0e-main-session"
    assert (await house.chat(FAMILY)).session_id is None
    told = remarks(report, "note")
    assert "its session is left out: what the agent remembered is not there" in told
    assert "sessions ['main'] it goes on only under the kind of agent that made it" in told


async def test_files_keep_their_modes_and_times(tmp_path: Path, house: House) -> None:
    source = lived_in(tmp_path)
    await house.move_in(source)
    for name in (
        "groups/main/CLAUDE.md",
        "groups/global/CLAUDE.md",
        "groups/family-chat/conversations/2026-01-29-tea.md",
        "groups/family-chat/tools/run.sh",
        "data/sessions/main/.claude/projects/-workspace-group/0f0e-main-session.jsonl",
    ):
        theirs, ours = source.path / name, house.path / name
        assert ours.read_bytes() == theirs.read_bytes()
        assert ours.stat().st_mode == theirs.stat().st_mode
        assert ours.stat().st_mtime_ns == theirs.stat().st_mtime_ns
    assert not (house.path / "groups" / "left-long-ago").exists()
    assert not (house.path / "data" / "ipc" / "main" / "messages").exists()


async def test_what_is_not_carried_over_is_said_and_no_secret_is_told(
    tmp_path: Path, house: House
) -> None:
    report = await house.move_in(lived_in(tmp_path))
    told = remarks(report, "note")
    for what in (
        "not carried over: ANTHROPIC_API_KEY;",
        "store/auth",
        "data/ipc: 1",
        "groups/left-long-ago",
        "its channel (whatsapp) is not set up here",
        "['web:main'] nothing was ever said in it",
    ):
        assert what in told
    assert "sk-secret" not in json.dumps(report)
    assert not (house.path / ".env").exists()


async def test_a_second_import_changes_nothing_and_adds_what_is_new(
    tmp_path: Path, house: House
) -> None:
    source = lived_in(tmp_path)
    await house.move_in(source)
    async with house.front.client() as operator:
        await operator.patch("/api/groups/notes", json={"name": "Mine", "trigger": "@Mona"})
        await operator.patch(f"/api/tasks/{DAILY}", json={"prompt": "Say good night."})
    memory = house.path / "groups" / "family-chat" / "CLAUDE.md"
    memory.write_text("Bea likes coffee.\n")
    again = await house.move_in(source)
    assert counted(again, "carried") == {}
    assert counted(again, "there") == {**ALL, "files": 5}
    assert "another one of this name is there already, and stays" in remarks(again, "skipped")
    assert memory.read_text() == "Bea likes coffee.\n"
    notes = (await house.groups())[WEB]
    assert (notes["name"], notes["trigger"]) == ("Mine", "@Mona")
    assert (await house.tasks())[DAILY]["prompt"] == "Say good night."
    source.say(WEB, "N2", "and the bread", "2026-02-02T12:00:00.000Z")
    source.group("web:new", "new")
    source.write("groups/notes/new.md")
    more = await house.move_in(source)
    assert counted(more, "carried") == {"groups": 1, "files": 1, "messages": 1}
    assert await house.said(WEB) == ["remember the milk", "and the bread"]


async def test_messages_that_wait_here_are_not_passed_over(tmp_path: Path, house: House) -> None:
    source = lived_in(tmp_path)
    await house.move_in(source)
    await house.front.say("are you there?", WEB)
    source.say(WEB, "N2", "and the bread", "2026-02-02T12:00:00.000Z")
    await house.move_in(source)
    opened = await house.front.open_turn((await house.chat(WEB)).id)
    assert [line.text for line in opened.batch.lines] == ["are you there?"]


async def test_a_session_that_was_ended_here_does_not_come_back(
    tmp_path: Path, house: House
) -> None:
    source = lived_in(tmp_path)
    await house.move_in(source)
    chat = await house.chat(MAIN)
    await house.front.store.write(lambda tx: tx.chats.save(chat.renewed()))
    again = await house.move_in(source)
    assert (await house.chat(MAIN)).session_id is None
    assert again["counts"]["sessions"]["skipped"] == 1


async def test_a_dry_run_tells_the_same_and_writes_nothing(tmp_path: Path, house: House) -> None:
    source = lived_in(tmp_path)
    source.group("bad chat", "odd")
    source.task("task-9", "nowhere", MAIN, "cron", "* * * * *")
    source.allow("mount-allowlist.json", {"allowedRoots": [{"path": str(tmp_path)}]})
    source.allow("sender-allowlist.json", {"chats": {WEB: {"allow": ["alice"], "mode": "drop"}}})
    (house.path / "groups" / "main").mkdir(parents=True)
    (house.path / "groups" / "main" / "CLAUDE.md").write_text("Mine.\n")
    (house.path / "groups" / "family-chat").write_text("in the way")
    (house.path / "run").mkdir()
    before = kept(house.path)
    dry = await house.move_in(source, is_dry_run=True)
    assert kept(house.path) == before
    assert list((house.path / "run").iterdir()) == []
    wet = await house.move_in(source)
    assert (dry.pop("is_dry_run"), wet.pop("is_dry_run")) == (True, False)
    assert dry == wet
    assert kept(house.path) != before


async def test_the_allow_lists_come_along(tmp_path: Path, house: House) -> None:
    source = lived_in(tmp_path)
    (tmp_path / "photos").mkdir()
    root = {"path": str(tmp_path / "photos"), "allowReadWrite": True, "description": "pictures"}
    source.allow(
        "mount-allowlist.json",
        {"allowedRoots": [root], "blockedPatterns": ["taxes"], "nonMainReadOnly": False},
    )
    source.allow(
        "sender-allowlist.json",
        {
            "default": {"allow": "*", "mode": "trigger"},
            "chats": {
                FAMILY: {"allow": ["bea@s.whatsapp.net"], "mode": "trigger"},
                WEB: {"allow": [], "mode": "drop"},
            },
            "logDenied": True,
        },
    )
    mounts = [
        {"hostPath": str(tmp_path / "photos"), "containerPath": "our/pictures", "readonly": False},
        {"hostPath": "/nowhere/at/all"},
        {"hostPath": str(tmp_path / "photos"), "containerPath": "our-pictures"},
        {"hostPath": 7},
    ]
    config = json.dumps({"additionalMounts": mounts, "timeout": 600_000})
    source.run("UPDATE registered_groups SET container_config = ? WHERE jid = ?", config, FAMILY)
    report = await house.move_in(source)
    assert report["counts"]["allow_lists"] == {"carried": 2, "there": 0, "skipped": 0}
    policy = house.path / "policy" / "mounts.json"
    assert json.loads(policy.read_text())["allowedRoots"] == [root]
    assert stat.S_IMODE(policy.stat().st_mode) == 0o600
    groups = await house.groups()
    assert groups[FAMILY]["senders"] == {"allow": ["bea@s.whatsapp.net"], "others": "store"}
    assert groups[FAMILY]["agent_settings"] == {
        "mounts": [{"path": str(tmp_path / "photos"), "name": "our-pictures", "writable": True}],
        "timeout": 600.0,
    }
    assert groups[WEB]["senders"] == {"allow": [], "others": "ignore"}
    assert groups[MAIN]["senders"] is None
    told = remarks(report, "note")
    assert "/nowhere/at/all is left out: it is not on this machine" in told
    assert "photos is left out: another one is called our-pictures" in told
    assert "a folder from elsewhere is left out: a mount needs its path" in told
    assert "here its id has to be on it" in told
    again = await house.move_in(source)
    assert again["counts"]["allow_lists"] == {"carried": 0, "there": 2, "skipped": 0}


async def test_a_main_with_history_keeps_its_folder_and_hands_on_the_flag(
    tmp_path: Path, house: House
) -> None:
    await house.front.say("hello")
    report = await house.move_in(lived_in(tmp_path))
    groups = await house.groups()
    assert (groups["web:main"]["folder"], groups["web:main"]["is_main"]) == ("main", False)
    assert (groups[MAIN]["folder"], groups[MAIN]["is_main"]) == ("main-imported", True)
    assert (house.path / "groups" / "main-imported" / "CLAUDE.md").read_text() == "I am main.\n"
    assert not (house.path / "groups" / "main").exists()
    assert "it has 'main-imported'" in remarks(report, "mended")
    assert "it is not main any more" in remarks(report, "note")
    assert (await house.tasks())["task-2"]["group"] == "main-imported"


async def test_a_main_on_the_same_chat_takes_the_place_of_the_one_that_the_house_made(
    tmp_path: Path, house: House
) -> None:
    source = empty(tmp_path)
    source.write(".env", "ASSISTANT_NAME=Mona\n")
    source.group("web:main", "main", name="Home", trigger_pattern="@Mona")
    report = await house.move_in(source)
    groups = await house.groups()
    main = groups["web:main"]
    assert (list(groups), main["folder"], main["is_main"]) == (["web:main"], "main", True)
    assert (main["name"], main["trigger"], main["assistant_name"]) == ("Home", "@Mona", "Mona")
    assert counted(report, "carried")["groups"] == 1
    assert "not main any more" not in remarks(report, "note")
    again = await house.move_in(source)
    assert (counted(again, "carried"), counted(again, "there")["groups"]) == ({}, 1)


@pytest.mark.parametrize("change", [{"name": "Mine"}, {"trigger": "@Me"}])
async def test_a_main_on_the_same_chat_that_was_changed_here_stays_as_it_is(
    tmp_path: Path, house: House, change: dict[str, str]
) -> None:
    source = empty(tmp_path)
    source.group("web:main", "main", name="Home", trigger_pattern="@Mona")
    async with house.front.client() as operator:
        await operator.patch("/api/groups/main", json=change)
    await house.move_in(source)
    main = (await house.groups())["web:main"]
    assert change.items() <= main.items()


async def test_another_assistants_name_stays_with_the_groups(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.write(".env", "# mine\nASSISTANT_NAME=Mona\nMAX_CONCURRENT_CONTAINERS=3\nTZ=Mars/Base\n")
    source.group(WEB, "notes", trigger_pattern="@Mona")
    report = await house.move_in(source)
    groups = await house.groups()
    assert (groups[WEB]["assistant_name"], groups[WEB]["trigger"]) == ("Mona", "@Mona")
    told = remarks(report, "note")
    assert "MAX_CONCURRENT_CONTAINERS; the same names work" in told
    assert "TZ is not carried over: 'Mars/Base' is no time zone" in told
    assert list(groups) == ["web:main", WEB]  # they had no main


async def test_files_belong_to_whom_their_folder_does(tmp_path: Path, house: House) -> None:
    source = lived_in(tmp_path)
    tools = house.path / "groups" / "family-chat" / "tools"
    tools.mkdir(parents=True)
    agent = os.geteuid() or 1000  # only root can give files away
    os.chown(tools, agent, -1)
    await house.move_in(source)
    assert (tools / "run.sh").stat().st_uid == agent
