from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hallporter_runner.mail import Mail
from hallporter_runner.schedules import trouble_with
from hallporter_runner.tools import TOOLS, ToolError, request_of
from hallporter_runner.toolset import Toolset
from tests.runner.host import Host

NOON = {"prompt": "lunch", "schedule_type": "cron", "schedule_value": "0 12 * * *"}
READER = {"jid": "web:reader", "name": "Reader", "folder": "reader", "trigger": "@Andy"}


def request(
    name: str, arguments: dict[str, Any], *, is_main: bool | None = None
) -> dict[str, object]:
    return request_of(TOOLS[name], arguments, is_main=is_main)


def test_there_are_the_promised_tools() -> None:
    assert set(TOOLS) == {
        "send_message",
        "schedule_task",
        "list_tasks",
        "pause_task",
        "resume_task",
        "cancel_task",
        "register_group",
        "update_task",
        "run_task",
        "refresh_groups",
    }


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_describes_what_it_takes(name: str) -> None:
    schema = TOOLS[name].schema()
    Draft202012Validator.check_schema(schema)
    assert TOOLS[name].says.endswith(".")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        pytest.param(
            "send_message",
            {"text": "half done", "sender": "Researcher", "target_jid": "web:b", "file": "a.png"},
            {
                "type": "message",
                "text": "half done",
                "sender": "Researcher",
                "targetJid": "web:b",
                "file": "a.png",
            },
            marks=[
                pytest.mark.requirement("mcp.send-message.text"),
                pytest.mark.requirement("mcp.send-message.sender"),
            ],
        ),
        pytest.param(
            "schedule_task",
            {
                **NOON,
                "context_mode": "isolated",
                "target_group_jid": "web:b",
                "timezone": "Africa/Cairo",
                "misfire": "skip",
            },
            {
                "type": "schedule_task",
                **NOON,
                "context_mode": "isolated",
                "targetJid": "web:b",
                "timezone": "Africa/Cairo",
                "misfire": "skip",
            },
            marks=[
                pytest.mark.requirement("mcp.schedule-task.prompt"),
                pytest.mark.requirement("mcp.schedule-task.schedule-type"),
                pytest.mark.requirement("mcp.schedule-task.schedule-value"),
                pytest.mark.requirement("mcp.schedule-task.context-mode"),
            ],
        ),
        pytest.param(
            "pause_task",
            {"task_id": "task-1"},
            {"type": "pause_task", "taskId": "task-1"},
            marks=pytest.mark.requirement("mcp.pause-task.task-id"),
        ),
        pytest.param(
            "resume_task",
            {"task_id": "task-1"},
            {"type": "resume_task", "taskId": "task-1"},
            marks=pytest.mark.requirement("mcp.resume-task.task-id"),
        ),
        pytest.param(
            "cancel_task",
            {"task_id": "task-1"},
            {"type": "cancel_task", "taskId": "task-1"},
            marks=pytest.mark.requirement("mcp.cancel-task.task-id"),
        ),
        ("run_task", {"task_id": "task-1"}, {"type": "run_task", "taskId": "task-1"}),
        (
            "update_task",
            {"task_id": "task-1", "prompt": "tea", "misfire": None},
            {"type": "update_task", "taskId": "task-1", "prompt": "tea"},
        ),
        pytest.param(
            "register_group",
            {**READER, "requires_trigger": False, "assistant_name": "Bo"},
            {
                "type": "register_group",
                **READER,
                "requiresTrigger": False,
                "assistantName": "Bo",
            },
            marks=[
                pytest.mark.requirement("mcp.register-group.jid"),
                pytest.mark.requirement("mcp.register-group.name"),
                pytest.mark.requirement("mcp.register-group.folder"),
                pytest.mark.requirement("mcp.register-group.trigger"),
                pytest.mark.requirement("mcp.register-group.trigger-pattern"),
                pytest.mark.requirement("mcp.register-group.requires-trigger"),
                pytest.mark.requirement("mcp.register-group.assistant-name"),
            ],
        ),
        ("refresh_groups", {}, {"type": "refresh_groups"}),
        pytest.param(
            "list_tasks",
            {},
            {"type": "list_tasks"},
            marks=pytest.mark.requirement("mcp.list-tasks.no-parameters"),
        ),
    ],
)
def test_a_call_becomes_a_request(
    name: str, arguments: dict[str, Any], expected: dict[str, object]
) -> None:
    assert request(name, arguments) == expected
    assert request(name, arguments, is_main=True) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("send_message", {}, "text is missing: The words"),
        ("send_message", {"text": "  "}, "text is empty"),
        ("send_message", {"text": 5}, "text must be a string, not 5"),
        ("send_message", {"text": "a", "to": "b"}, "takes text, sender, target_jid, file, not to"),
        ("list_tasks", {"all": True}, "list_tasks takes nothing, not all"),
        ("schedule_task", {**NOON, "schedule_type": "daily"}, "one of cron, interval, once, not"),
        ("schedule_task", {**NOON, "context_mode": "own"}, "one of group, isolated, not 'own'"),
        ("schedule_task", {**NOON, "misfire": "twice"}, "one of once, skip, all, not 'twice'"),
        ("update_task", {"task_id": "task-1"}, "nothing to change"),
        ("update_task", {"task_id": "t", "schedule_type": "once"}, "schedule_value is missing"),
        ("register_group", {**READER, "requires_trigger": "no"}, "must be true or false, not 'no'"),
        ("register_group", {**READER, "folder": "../etc"}, "folder cannot be '../etc'"),
        ("register_group", {**READER, "folder": "a" * 65}, "at most 64"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_with_what_does(
    name: str, arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ToolError) as refusal:
        request(name, arguments)
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    ("schedule_type", "value"),
    [
        ("cron", "0 9 * * *"),
        ("cron", "*/5 * * * 1-5"),
        ("cron", "@daily"),
        ("interval", "1000"),
        ("interval", "3600000"),
        ("once", "2026-02-23T15:30:00"),
        ("once", "2026-02-23 15:30"),
    ],
)
def test_a_schedule_is_taken(schedule_type: str, value: str) -> None:
    asked = {**NOON, "schedule_type": schedule_type, "schedule_value": value}
    assert request("schedule_task", asked)["schedule_value"] == value


@pytest.mark.parametrize(
    ("schedule_type", "value", "complaint"),
    [
        ("daily", "9", "schedule_type must be one of cron, interval, once, not 'daily'"),
        ("cron", "0 9 * *", "it has five fields"),
        ("cron", "0 0 9 * * *", "it has five fields"),
        ("cron", "@reboot", "is one of @hourly, @daily"),
        ("interval", "999", "milliseconds from 1000 up"),
        ("interval", "5m", "milliseconds from 1000 up"),
        ("interval", "-5000", "milliseconds from 1000 up"),
        ("interval", "٣٠٠٠", "milliseconds from 1000 up"),
        ("once", "tomorrow", "write it as in '2026-02-23T15:30:00'"),
        ("once", "2026-02-23", "write it as in '2026-02-23T15:30:00'"),
        ("once", "2026-02-23T15:30:00Z", "write the local time alone, as in '2026-02-23T15:30:00'"),
        ("once", "2026-02-23T15:30:00+02:00", "and its zone in timezone"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(
    schedule_type: str, value: str, complaint: str
) -> None:
    assert complaint in trouble_with(schedule_type, value)
    asked = {**NOON, "schedule_type": schedule_type, "schedule_value": value}
    with pytest.raises(ToolError):
        request("schedule_task", asked)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param(
            "register_group",
            READER,
            marks=pytest.mark.requirement("mcp.register-group.main-only"),
        ),
        ("refresh_groups", {}),
        ("send_message", {"text": "hello", "target_jid": "web:b"}),
        pytest.param(
            "schedule_task",
            {**NOON, "target_group_jid": "web:b"},
            marks=pytest.mark.requirement("mcp.schedule-task.target-main-only"),
        ),
    ],
)
def test_what_is_for_main_is_refused_to_others_with_the_reason(
    name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ToolError, match="only the main group may do that"):
        request(name, arguments, is_main=False)
    assert request(name, arguments, is_main=None)  # the host decides


@pytest.mark.requirement("mcp.schedule-task.context-mode-default")
def test_a_mode_that_is_not_given_is_left_to_the_host() -> None:
    assert "context_mode" not in request("schedule_task", NOON)


@pytest.mark.requirement("mcp.schedule-task.returns-id")
def test_a_scheduled_task_has_an_id_from_the_start(tmp_path: Path) -> None:
    with Host(tmp_path, lambda _: {"ok": True, "next_run": "2026-02-20T10:00:00Z"}) as host:
        toolset = Toolset(Mail(host.ipc), is_main=True)
        first, second = (toolset.call("schedule_task", NOON) for _ in range(2))
    ids = [request["taskId"] for request in host.requests]
    assert ids == [first.data["task_id"], second.data["task_id"]]
    assert len({*ids}) == 2
    assert first.text == f"Scheduled as {ids[0]}; it is due at 2026-02-20T10:00:00Z."


def test_words_of_which_nothing_was_left_are_not_called_sent(tmp_path: Path) -> None:
    with Host(tmp_path, lambda _: {"ok": True, "sent": False}) as host:
        toolset = Toolset(Mail(host.ipc), is_main=True)
        outcome = toolset.call("send_message", {"text": "<internal>hm</internal>"})
    assert outcome.text == "Nothing was sent: no words were left for the chat."


def test_the_id_is_told_even_when_the_host_is_late(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    with pytest.raises(ToolError, match=r"it will still act on it, as task-[0-9a-f]{10}$"):
        Toolset(Mail(tmp_path, patience=0.01), is_main=True).call("schedule_task", NOON)


@pytest.mark.requirement("mcp.list-tasks.from-snapshot")
@pytest.mark.requirement("mcp.list-tasks.array")
@pytest.mark.requirement("mcp.list-tasks.readable")
def test_tasks_are_listed_from_the_snapshot_in_words_and_as_data(tmp_path: Path) -> None:
    task = {
        "id": "task-1",
        "groupFolder": "main",
        "prompt": "look at\nthe weather and say whether an umbrella is needed today",
        "schedule_type": "cron",
        "schedule_value": "0 9 * * *",
        "timezone": "Africa/Cairo",
        "status": "active",
        "next_run": "2026-02-20T07:00:00Z",
    }
    host = Host(tmp_path)
    host.write("current_tasks.json", [task, {**task, "id": "task-2", "next_run": None}])
    outcome = Toolset(Mail(host.ipc), is_main=True).call("list_tasks", {})
    assert outcome.data["tasks"][0] == task  # type: ignore[index]
    excerpt = "look at the weather and say whether an umbrella is…"
    schedule = "cron 0 9 * * * Africa/Cairo"
    assert outcome.text.splitlines()[1:] == [
        f"- task-1: {excerpt} ({schedule}; active, next run 2026-02-20T07:00:00Z)",
        f"- task-2: {excerpt} ({schedule}; active)",
    ]


def test_no_snapshot_is_no_tasks(tmp_path: Path) -> None:
    toolset = Toolset(Mail(tmp_path), is_main=False)
    assert toolset.call("list_tasks", {}).text == "There are no tasks."
    assert toolset.groups() == []


def test_a_broken_snapshot_is_a_tool_error(tmp_path: Path) -> None:
    (tmp_path / "current_tasks.json").write_text("{", encoding="utf-8")
    with pytest.raises(ToolError, match="cannot be read"):
        Toolset(Mail(tmp_path), is_main=False).call("list_tasks", {})


def test_an_unknown_tool_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is no tool 'fly'; there are send_message, "):
        Toolset(Mail(tmp_path), is_main=True).call("fly", {})
