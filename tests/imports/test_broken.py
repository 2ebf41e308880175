"""Whatever an older version, a crash or a hand has left is left out or mended, alone, and told."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hallporter.domain import import_report
from hallporter.domain.import_report import Ledger, Noun
from tests.imports.home import FAMILY, MAIN, OLD_SCHEMA, SCHEMA, WEB, empty, lived_in
from tests.imports.house import House, counted, open_house, remarks

# Nothing in it is refused by the database itself.
LOOSE = SCHEMA.replace(" NOT NULL", "").replace(" UNIQUE", "").replace("TEXT PRIMARY KEY", "TEXT")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path / "home") as opened:
        yield opened


async def test_the_first_release_is_understood(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path, OLD_SCHEMA)
    source.write(".env", "ASSISTANT_NAME=Mona\n")
    source.chat(FAMILY, "Family")
    source.group(MAIN, "main")
    source.group(FAMILY, "family")
    source.say(FAMILY, "1", "hello", "2026-02-01T09:00:00.000Z")
    source.say(FAMILY, "2", "Mona: hello yourself", "2026-02-01T09:00:01.000Z", is_from_me=1)
    source.task("task-1", "family", FAMILY, "cron", "0 9 * * *")
    report = await house.move_in(source)
    assert counted(report, "carried") == {"chats": 1, "groups": 2, "messages": 2, "tasks": 1}
    groups = await house.groups()
    assert groups[MAIN]["is_main"]
    assert groups[FAMILY]["requires_trigger"]
    assert (await house.tasks())["task-1"]["context_mode"] == "isolated"
    known = {chat["chat"]: chat for chat in (await house.get("/api/chats"))["data"]}
    assert (known[FAMILY]["channel"], known[FAMILY]["is_group"]) == ("whatsapp", True)
    assert (await house.get("/api/messages/2/fate"))["message"]["is_bot"]
    assert not (await house.get("/api/messages/1/fate"))["message"]["is_bot"]


async def test_a_number_of_its_own_makes_all_that_it_sent_the_assistants(
    tmp_path: Path, house: House
) -> None:
    source = empty(tmp_path, OLD_SCHEMA)
    source.write(".env", "ASSISTANT_HAS_OWN_NUMBER=true\n")
    source.group(WEB, "notes")
    source.say(WEB, "1", "hello yourself", "2026-02-01T09:00:01.000Z", is_from_me=1)
    await house.move_in(source)
    fate = await house.get("/api/messages/1/fate")
    assert (fate["message"]["is_bot"], fate["message"]["sender"]) == (True, "Andy")


async def test_a_flag_in_the_table_decides_who_is_main(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.run("ALTER TABLE registered_groups ADD COLUMN is_main INTEGER DEFAULT 0")
    source.group(MAIN, "main")
    source.group(FAMILY, "family", is_main=1)
    await house.move_in(source)
    groups = await house.groups()
    assert {chat: group["is_main"] for chat, group in groups.items()} == {FAMILY: True, MAIN: False}


@pytest.mark.parametrize(
    ("group", "sort", "told"),
    [
        ({"jid": None}, "skipped", "it has no chat or no folder"),
        ({"jid": "with space"}, "skipped", "'with space' is no chat's id"),
        ({"jid": "x" * 400}, "skipped", "is no chat's id"),
        ({"folder": ""}, "skipped", "it has no chat or no folder"),
        ({"folder": "../../etc"}, "skipped", "folder '../../etc' is not allowed"),
        ({"folder": "global"}, "skipped", "folder 'global' is reserved"),
        ({"folder": "x" * 65}, "skipped", "is not allowed"),
        ({"folder": "errors"}, "mended", "it has 'errors-imported'"),
        ({"folder": "MAIN", "jid": "web:a"}, "mended", "it has 'MAIN-imported'"),
        ({"name": None}, "mended", "it has no name"),
        ({"name": "n" * 300}, "mended", "cut to 200 characters"),
        ({"name": "two\nlines\x1b[31m"}, "", ""),
        ({"trigger_pattern": "(((("}, "mended", "it has the trigger '@Andy'"),
        ({"trigger_pattern": "@Bob"}, "note", "its own trigger '@Bob' counts here"),
        ({"trigger_pattern": None}, "", ""),
        ({"added_at": "yesterday"}, "", ""),
        ({"requires_trigger": None}, "", ""),
        ({"requires_trigger": "often"}, "", ""),
        ({"container_config": "{half"}, "note", "(container_config) cannot be read"),
        ({"container_config": "[1]"}, "note", "(container_config) cannot be read"),
        ({"container_config": '{"timeout": "long", "additionalMounts": 7}'}, "", ""),
        (
            {"container_config": '{"additionalMounts": [{"hostPath": "/tmp"}]}'},
            *("note", "there is no allow-list of folders"),
        ),
    ],
)
async def test_a_group_that_is_odd(
    tmp_path: Path, house: House, group: dict[str, Any], sort: str, told: str
) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(**({"jid": "web:odd", "folder": "odd"} | group))
    source.group(WEB, "notes")
    report = await house.move_in(source)
    assert report["counts"]["groups"]["carried"] == (1 if sort == "skipped" else 2)
    assert WEB in await house.groups()
    if sort:
        assert told in remarks(report, sort)
    else:
        assert remarks(report, "skipped") + remarks(report, "mended") == ""


async def test_folders_that_collide_get_other_names(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    await house.front.register("web:mine", "family")
    source.group("web:a", "Family")
    source.group("web:b", "family")
    source.group("web:c", "family-imported")
    source.write("groups/Family/CLAUDE.md", "a")
    source.write("groups/family/CLAUDE.md", "b")
    await house.move_in(source)
    folders = {chat: group["folder"] for chat, group in (await house.groups()).items()}
    assert folders["web:a"] == "Family-imported"
    assert folders["web:b"] == "family-imported-2"
    assert folders["web:c"] == "family-imported-imported"
    groups = house.path / "groups"
    assert (groups / "Family-imported" / "CLAUDE.md").read_text() == "a"
    assert (groups / "family-imported-2" / "CLAUDE.md").read_text() == "b"
    assert not (groups / "family").exists()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"chat_jid": None}, "it names no chat"),
        ({"chat_jid": "a b"}, "'a b' is no chat's id"),
        ({"content": None}, "it has no text"),
        ({"content": "  \n"}, "it has no text"),
    ],
)
async def test_a_message_that_says_nothing_is_left_out(
    tmp_path: Path, house: House, row: dict[str, Any], told: str
) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(WEB, "notes")
    source.say(WEB, "1", "before", "2026-02-01T09:00:00.000Z")
    source.insert(
        "messages", **({"id": "2", "chat_jid": WEB, "content": "x", "timestamp": "?"} | row)
    )
    source.say(WEB, "3", "after", "2026-02-01T09:00:01.000Z")
    report = await house.move_in(source)
    assert report["counts"]["messages"] == {"carried": 2, "there": 0, "skipped": 1}
    assert told in remarks(report, "skipped")
    assert await house.said(WEB) == ["before", "after"]


async def test_messages_that_are_odd_are_kept(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(WEB, "notes")
    source.say(WEB, "1", "the first", "2026-02-01T09:00:00.000Z", sender_name=None)
    source.say(WEB, "2", "no time", "soon", sender=None, sender_name=None)
    source.say(WEB, "3", "far ahead", "2199-02-01T09:00:00Z")
    source.say(WEB, None, "no id", "2026-02-01T09:00:02+01:00")
    source.say(WEB, "5", b"\xff\xfe bytes", "2026-02-01T09:00:03")
    source.say(WEB, "6", "half a \x00 line", "9999-12-31T23:59:59-14:00")
    source.say("web:gone", "7", "of a chat that is no group any more", "2026-02-01T09:00:03Z")
    source.insert("router_state", key="last_agent_timestamp", value="{half")
    report = await house.move_in(source)
    assert report["counts"]["messages"] == {"carried": 7, "there": 0, "skipped": 0}
    assert await house.said(WEB) == [
        "no id",
        "the first",
        "no time",
        "�� bytes",
        "far ahead",
        "half a  line",
    ]
    assert "its time cannot be read" in remarks(report, "mended")
    assert "it had no id" in remarks(report, "mended")
    assert "['web:gone'] its chat is no group here" in remarks(report, "note")
    again = await house.move_in(source)
    assert again["counts"]["messages"] == {"carried": 0, "there": 7, "skipped": 0}


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({"id": None}, "it has no id or no group"),
        ({"group_folder": "nobody"}, "no group with the folder 'nobody' was imported"),
        ({"prompt": " "}, "the prompt is empty"),
        ({"schedule_type": "often"}, "'often' is no type of schedule"),
        ({"schedule_value": "0 9 * *"}, "has 4 fields"),
        ({"schedule_value": "0 0 9 * * *"}, "has 6 fields"),
        ({"schedule_type": "interval", "schedule_value": "20"}, "'20' is no interval"),
        ({"schedule_type": "interval", "schedule_value": "soon"}, "'soon' is no interval"),
        ({"schedule_type": "once", "schedule_value": "tomorrow"}, "'tomorrow' is no time"),
        ({"schedule_type": "once", "schedule_value": None}, "'' is no time"),
        ({"schedule_type": "once", "schedule_value": "0001-01-01T00:00"}, "is no time"),
    ],
)
async def test_a_task_that_cannot_be_is_left_out_with_its_runs(
    tmp_path: Path, house: House, task: dict[str, Any], told: str
) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(WEB, "notes")
    row = {
        "id": "bad",
        "group_folder": "notes",
        "chat_jid": WEB,
        "prompt": "Do.",
        "status": "active",
    }
    schedule = {"schedule_type": "cron", "schedule_value": "0 9 * * *"}
    source.insert("scheduled_tasks", **(row | schedule | task))
    source.task("good", "notes", WEB, "cron", "@daily")
    source.ran("bad", "2026-02-01T09:00:00Z")
    source.ran("good", "2026-02-01T09:00:00Z")
    source.ran("good", None)
    report = await house.move_in(source)
    assert list(await house.tasks()) == ["good"]
    assert report["counts"]["tasks"] == {"carried": 1, "there": 0, "skipped": 1}
    assert report["counts"]["ticks"] == {"carried": 1, "there": 0, "skipped": 2}
    assert told in remarks(report, "skipped")


async def test_tasks_that_are_odd_are_mended(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(WEB, "notes")
    source.task("over", "notes", WEB, "once", "2026-02-01T09:00:00")
    source.task("later", "notes", WEB, "once", "2026-03-01T09:00:00.000Z")
    source.task("sleepy", "notes", WEB, "cron", "@daily", status="dozing")
    source.task("elsewhere", "notes", FAMILY, "cron", "@daily", created_at="?", next_run="?")
    source.task("my task!", "notes", WEB, "cron", "@daily", context_mode="strange")
    report = await house.move_in(source)
    tasks = await house.tasks()
    assert tasks["over"]["status"] == "completed"
    assert tasks["later"]["next_run"] == "2026-03-01T09:00:00Z"
    assert tasks["later"]["schedule_value"] == "2026-03-01T10:00:00"  # in Berlin
    assert (tasks["sleepy"]["status"], tasks["sleepy"]["next_run"]) == ("paused", None)
    assert tasks["elsewhere"]["chat"] == WEB
    [odd] = [id_ for id_ in tasks if id_.startswith("my-task--")]
    assert tasks[odd]["context_mode"] == "isolated"
    told = remarks(report, "mended")
    for what in (
        "its time had passed",
        "had a zone in it",
        "'dozing'",
        "another chat",
        f"it has '{odd}'",
    ):
        assert what in told


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{half", "it is not valid JSON"),
        ("[]", "it is no JSON object"),
        ('{"chats": []}', "'chats' is no object"),
        ('{"default": {"allow": "some"}}', "neither '*' nor a list"),
        ('{"default": {"allow": "*", "mode": "shout"}}', "neither 'trigger' nor 'drop'"),
        ('{"chats": {"web:notes": 7}}', "an entry is no object"),
        ('{"default": {"allow": [""]}}', "a sender's id is one line"),
    ],
)
async def test_a_broken_list_of_senders_lets_everyone_talk_as_it_did(
    tmp_path: Path, house: House, document: str, told: str
) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    (source.config / "sender-allowlist.json").write_text(document)
    report = await house.move_in(source)
    assert (await house.groups())[WEB]["senders"] is None
    assert told in remarks(report, "skipped")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("{half", "it is not valid JSON"),
        ("{}", "'allowedRoots' is no list"),
        ('{"allowedRoots": [{"path": "relative"}]}', "'allowedRoots' is no list"),
        ('{"allowedRoots": [{"path": "/a", "allowReadWrite": 1}]}', "'allowedRoots' is no list"),
        ('{"allowedRoots": [], "blockedPatterns": [1]}', "'blockedPatterns' is no list"),
    ],
)
async def test_a_broken_list_of_folders_is_left(
    tmp_path: Path, house: House, document: str, told: str
) -> None:
    source = empty(tmp_path)
    (source.config / "mount-allowlist.json").write_text(document)
    report = await house.move_in(source)
    assert told in remarks(report, "skipped")
    assert not (house.path / "policy" / "mounts.json").exists()


async def test_a_list_of_folders_of_ours_stays(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.allow("mount-allowlist.json", {"allowedRoots": [{"path": "/srv"}]})
    policy = house.path / "policy" / "mounts.json"
    policy.parent.mkdir()
    policy.write_text("{}")
    report = await house.move_in(source)
    assert policy.read_text() == "{}"
    assert "policy/mounts.json is there already" in remarks(report, "skipped")


async def test_a_damaged_table_does_not_hinder_the_others(tmp_path: Path, house: House) -> None:
    source = lived_in(tmp_path)
    source.run("DROP TABLE task_run_logs")
    source.run("DROP TABLE router_state")
    page, size = source.root_of("scheduled_tasks")
    with source.database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    report = await house.move_in(source)
    assert counted(report, "carried")["messages"] == 11
    assert counted(report, "carried")["groups"] == 3
    assert "['table scheduled_tasks'] the rest cannot be read" in remarks(report, "skipped")


async def test_a_session_that_is_none_is_left_out(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    source.write("data/sessions/notes/.claude/x")
    source.insert("sessions", group_folder="notes", session_id="two\nlines")
    report = await house.move_in(source)
    assert "its session is left out: the id is none" in remarks(report, "note")
    assert (await house.chat(WEB)).session_id is None


async def test_an_env_that_cannot_be_read_is_said(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    (source.path / ".env").mkdir()
    report = await house.move_in(source)
    assert ".env cannot be read" in remarks(report, "note")


async def test_a_name_that_is_none_is_said(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    source.write(".env", f"ASSISTANT_NAME={'x' * 100}\n")
    report = await house.move_in(source)
    assert "ASSISTANT_NAME is not carried over" in remarks(report, "note")
    assert (await house.groups())[WEB]["assistant_name"] is None


def test_a_report_of_endless_trouble_ends() -> None:
    ledger = Ledger()
    for number in range(import_report.MAX_REMARKS + 7):
        ledger.skipped(Noun.MESSAGES, f"m{number}", f"reason {number}")
        ledger.skipped(Noun.MESSAGES, f"m{number}", "the same")
    report = ledger.report("/srv/x", is_dry_run=False)
    assert len(report.remarks) == import_report.MAX_REMARKS + 1
    assert report.remarks[-1].count == 8
    same = next(one for one in report.remarks if one.what == "the same")
    assert (same.count, len(same.examples)) == (507, import_report.MAX_EXAMPLES)
    assert report.counts[Noun.MESSAGES]["skipped"] == 2 * 507  # type: ignore[index]


async def test_what_cannot_be_copied_is_said(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    tree = source.path / "groups" / "notes"
    source.write("groups/notes/inside/a.md")
    (tree / "good").symlink_to("inside/a.md")
    (tree / "out").symlink_to("../../.env")
    (tree / "away").symlink_to("/etc/passwd")
    (tree / "inside" / "up").symlink_to("../good")
    os.mkfifo(tree / "pipe")
    (tree / b"odd\xff".decode("utf-8", "surrogateescape")).write_text("x")
    ours = house.path / "groups" / "notes"
    report = await house.move_in(source)
    assert counted(report, "carried")["files"] == 4
    assert (ours / "good").readlink() == Path("inside/a.md")
    assert not (ours / "out").is_symlink()
    assert not (ours / "away").is_symlink()
    told = remarks(report, "skipped")
    assert "['groups/notes/away', 'groups/notes/out'] a link that leads out of its folder" in told
    assert "['groups/notes/pipe'] neither a file nor a folder" in told
    again = await house.move_in(source)
    assert again["counts"]["files"] == {"carried": 0, "there": 4, "skipped": 3}
    assert json.dumps(again)
