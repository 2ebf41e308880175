from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hallporter_runner.mail import PATIENCE, Mail, MailError, RefusedError, UnansweredError
from hallporter_wire.requests import MAX_REQUEST, MESSAGES, TASKS
from tests.runner.host import Host

SOON = 0.05  # seconds


@pytest.fixture
def ipc(tmp_path: Path) -> Path:
    for folder in ("messages", "tasks", "results"):
        (tmp_path / "ipc" / folder).mkdir(parents=True)
    return tmp_path / "ipc"


@pytest.mark.requirement("ipc.file.json")
@pytest.mark.requirement("mcp.send-message.writes-file")
@pytest.mark.requirement("mcp.schedule-task.writes-file")
@pytest.mark.parametrize("box", [MESSAGES, TASKS])
def test_a_request_is_a_json_file_in_its_box_and_its_result_comes_back(
    tmp_path: Path, box: str
) -> None:
    with Host(tmp_path, lambda _: {"ok": True, "next_run": "soon"}) as host:
        result = Mail(host.ipc).post(box, {"type": "message", "text": "مرحبا <&>"})
    assert result == {"next_run": "soon"}
    (posted,) = host.posted
    assert (posted.box, posted.request) == (box, {"type": "message", "text": "مرحبا <&>"})
    assert re.fullmatch(r"\d{13}-[0-9a-f]{12}\.json", posted.name)


@pytest.mark.requirement("ipc.file.atomic-write")
def test_the_host_never_meets_half_a_request(tmp_path: Path) -> None:
    text = "x" * (MAX_REQUEST - 100)
    with Host(tmp_path) as host:
        for _ in range(20):
            Mail(host.ipc).post(MESSAGES, {"type": "message", "text": text})
    assert [request["text"] == text for request in host.requests] == [True] * 20


def test_a_result_that_was_read_is_cleared_away(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        Mail(host.ipc).post(TASKS, {"type": "refresh_groups"})
    assert list((host.ipc / "results").iterdir()) == []


def test_a_refusal_is_an_error_in_the_hosts_words(tmp_path: Path) -> None:
    refusal = {"ok": False, "error": "only main may do that"}
    with Host(tmp_path, lambda _: refusal) as host, pytest.raises(RefusedError) as error:
        Mail(host.ipc).post(TASKS, {"type": "refresh_groups"})
    assert str(error.value) == "only main may do that"


def test_a_refusal_without_a_reason_is_called_that(tmp_path: Path) -> None:
    with Host(tmp_path, lambda _: {"ok": False}) as host, pytest.raises(RefusedError) as error:
        Mail(host.ipc).post(TASKS, {"type": "refresh_groups"})
    assert str(error.value) == "the host refused without a reason"


def test_a_host_that_is_silent_is_waited_for_and_the_request_stays(ipc: Path) -> None:
    with pytest.raises(UnansweredError, match=r"not answered within 0\.05 s; it will still act"):
        Mail(ipc, patience=SOON).post(TASKS, {"type": "refresh_groups"})
    (left,) = (ipc / "tasks").iterdir()
    assert json.loads(left.read_bytes()) == {"type": "refresh_groups"}


def test_the_patience_leaves_time_to_tell_of_it_within_five_seconds() -> None:
    assert 4 <= PATIENCE <= 4.5


def test_a_box_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MailError, match=r"cannot be left in .*/messages: No such file"):
        Mail(tmp_path / "ipc").post(MESSAGES, {"type": "message"})


def test_a_request_the_host_would_put_aside_is_not_left_at_all(ipc: Path) -> None:
    with pytest.raises(MailError, match=r"has 1,048,\d+ bytes and the host takes 1,048,576"):
        Mail(ipc).post(MESSAGES, {"type": "message", "text": "x" * MAX_REQUEST})
    assert list((ipc / "messages").iterdir()) == []


def test_an_answer_that_cannot_be_read_is_an_error(ipc: Path, tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        host.answer = lambda _: [1, 2]  # type: ignore[assignment, return-value]
        with pytest.raises(MailError, match="must be a JSON object, not a list"):
            Mail(ipc).post(TASKS, {"type": "refresh_groups"})


def test_a_snapshot_that_was_never_written_is_none_and_a_broken_one_an_error(ipc: Path) -> None:
    assert Mail(ipc).snapshot("current_tasks.json") is None
    (ipc / "current_tasks.json").write_text("[", encoding="utf-8")
    with pytest.raises(MailError, match=r"current_tasks\.json cannot be read"):
        Mail(ipc).snapshot("current_tasks.json")


def test_a_place_for_answers_that_is_no_folder_is_an_error(ipc: Path) -> None:
    (ipc / "results").rmdir()
    (ipc / "results").touch()
    with pytest.raises(MailError, match="its answer cannot be read: Not a directory"):
        Mail(ipc).post(TASKS, {"type": "refresh_groups"})
