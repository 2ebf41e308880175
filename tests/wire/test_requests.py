from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter_wire.errors import WireError
from hallporter_wire.requests import (
    MESSAGES,
    TASKS,
    ControlRequest,
    MessageRequest,
    RefreshRequest,
    RegisterRequest,
    ScheduleRequest,
    UpdateRequest,
    decode_request,
)
from tests.wire.golden_files import assert_fits, golden

CHAT = "120363@g.us"
SCHEDULE = ScheduleRequest(
    prompt="Water the plants.",
    schedule_type="cron",
    schedule_value="0 9 * * *",
    context_mode="isolated",
    target=CHAT,
)


@pytest.mark.requirement("ipc.message.shape")
def test_a_message_is_read_in_either_dialect() -> None:
    first = decode_request(golden("request-message-000.json"), MESSAGES)
    second = decode_request(golden("request-message-001.json"), MESSAGES)
    assert first == MessageRequest(text="Half of it is done.", target=CHAT)
    assert second == MessageRequest(text="Half of it is done.", target=CHAT, sender="Researcher")


@pytest.mark.requirement("ipc.schedule.shape")
def test_a_schedule_is_read_in_the_first_dialect() -> None:
    read = decode_request(golden("request-schedule-000.json"), TASKS)
    assert read == ScheduleRequest(
        prompt=SCHEDULE.prompt,
        schedule_type="cron",
        schedule_value=SCHEDULE.schedule_value,
        context_mode="isolated",
        target=CHAT,
        folder="family",
    )


@pytest.mark.requirement("ipc.schedule.snake-case")
def test_a_schedule_is_read_as_the_tool_spells_it() -> None:
    read = decode_request(golden("request-schedule-001.json"), TASKS)
    assert read == ScheduleRequest(
        prompt=SCHEDULE.prompt,
        schedule_type="cron",
        schedule_value=SCHEDULE.schedule_value,
        context_mode="isolated",
        target=CHAT,
        task="task-1",
        timezone="Europe/Berlin",
        misfire="skip",
    )


@pytest.mark.requirement("ipc.control.shape")
@pytest.mark.parametrize("verb", ["pause_task", "resume_task", "cancel_task", "run_task"])
def test_a_control_is_read_in_either_dialect(verb: str) -> None:
    files = (golden("request-control-000.json"), golden("request-control-001.json"))
    first, second = (
        decode_request(file.replace(b"pause_task", verb.encode()), TASKS) for file in files
    )
    assert isinstance(first, ControlRequest)
    assert isinstance(second, ControlRequest)
    assert (first.verb, first.task, first.folder) == (verb, "task-1", "family")
    assert (second.verb, second.task, second.folder) == (verb, "task-1", None)


def test_an_interval_may_be_a_number() -> None:
    read = decode_request(golden("request-update.json"), TASKS)
    assert read == UpdateRequest(
        task="task-1",
        prompt="Water all plants.",
        schedule_type="interval",
        schedule_value="3600000",
    )


@pytest.mark.requirement("ipc.register.shape")
def test_a_registration_is_read_in_either_dialect() -> None:
    wanted = RegisterRequest(
        chat=CHAT,
        name="Family",
        folder="family",
        trigger="@Andy",
        requires_trigger=False,
        assistant_name="Andy",
    )
    assert decode_request(golden("request-register-000.json"), TASKS) == wanted
    assert decode_request(golden("request-register-001.json"), TASKS) == wanted


@pytest.mark.requirement("ipc.refresh.shape")
def test_a_refresh_is_read() -> None:
    assert decode_request(golden("request-refresh.json"), TASKS) == RefreshRequest(folder="main")


@pytest.mark.parametrize(
    "name",
    [
        *("message-000", "message-001", "schedule-000", "schedule-001", "control-000"),
        *("control-001", "update", "register-000", "register-001", "refresh"),
    ],
)
def test_every_golden_request_fits_the_schema(name: str) -> None:
    assert_fits(golden(f"request-{name}.json"), "request")


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        ({"chatJid": "own", "target_jid": "a"}, "a"),
        ({"target_jid": "a", "target_group_jid": "b"}, "b"),
        ({"target_group_jid": "b", "targetJid": "c"}, "c"),
        ({"chat_jid": "own"}, "own"),
        ({}, None),
    ],
)
def test_what_names_a_target_goes_before_what_names_the_asker(
    fields: dict[str, str], target: str | None
) -> None:
    request = {"type": "message", "text": "x", **fields}
    read = decode_request(json.dumps(request).encode(), MESSAGES)
    assert isinstance(read, MessageRequest)
    assert read.target == target


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({}, {}),
        ({"agent": {"model": "m"}}, {"model": "m"}),
        ({"containerConfig": {"timeout": 90000}}, {"timeout": 90.0}),
        ({"container_config": {"additionalMounts": []}}, {"additionalMounts": []}),
        ({"isMain": True, "senders": []}, {"is_main": True, "senders": []}),
    ],
)
def test_what_a_registration_would_set_besides_is_told_to_the_host(
    fields: dict[str, Any], settings: dict[str, Any]
) -> None:
    request = {"type": "register_group", "jid": CHAT, "name": "F", "folder": "f", **fields}
    read = decode_request(json.dumps(request).encode(), TASKS)
    assert isinstance(read, RegisterRequest)
    assert read.settings == settings
    assert read.requires_trigger


@pytest.mark.parametrize(
    ("box", "fields", "complaint"),
    [
        (MESSAGES, {}, "type: is missing"),
        (MESSAGES, {"type": "pause_task"}, "type: must be 'message' in messages/"),
        (MESSAGES, {"type": "message"}, "text: is missing"),
        (MESSAGES, {"type": "message", "text": 10**400}, "text: must be a string, not a huge"),
        (TASKS, {"type": "message", "text": "x"}, "type: a message belongs in messages/"),
        (TASKS, {"type": "dance"}, "type: must be one of schedule_task, "),
        (TASKS, {"type": "pause_task"}, "taskId: is missing"),
        (TASKS, {"type": "pause_task", "taskId": 7}, "taskId: must be a string"),
        (TASKS, {"type": "schedule_task"}, "schedule_value: is missing"),
        (TASKS, {"type": "schedule_task", "scheduleValue": "x"}, "prompt: is missing"),
        (
            TASKS,
            {"type": "schedule_task", "scheduleValue": True, "prompt": "x"},
            "scheduleValue: must be a string",
        ),
        (TASKS, {"type": "register_group", "name": "x"}, "jid: is missing"),
        (
            TASKS,
            {"type": "register_group", "jid": "x", "name": "x", "folder": "x", "agent": []},
            "agent: must be an object",
        ),
    ],
)
def test_a_wrong_request_says_what_is_wrong(
    box: str, fields: dict[str, object], complaint: str
) -> None:
    with pytest.raises(WireError) as caught:
        decode_request(json.dumps(fields).encode(), box)
    assert str(caught.value).startswith(complaint)


@given(data=st.binary() | st.text().map(str.encode), box=st.sampled_from([MESSAGES, TASKS]))
def test_anything_else_is_told_and_never_breaks(data: bytes, box: str) -> None:
    with pytest.raises(WireError):
        decode_request(data, box)
