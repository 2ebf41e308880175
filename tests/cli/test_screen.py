from __future__ import annotations

import pytest

from hallporter.cli import screen
from hallporter.cli.events import Event, Parser
from hallporter.cli.explain import story
from hallporter.cli.host import in_path
from hallporter.cli.screen import moment, plain_table
from hallporter.home import reachable


def test_plain_columns_are_aligned() -> None:
    assert plain_table(("a", "long name"), [("wide cell", "x"), ("y", "z")]) == [
        "A          LONG NAME",
        "wide cell  x",
        "y          z",
    ]


def test_a_moment_is_readable() -> None:
    assert moment("2026-02-19T10:00:01.123456Z") == "2026-02-19 10:00:01 UTC"
    assert moment(None) == ""


def fate(**more: object) -> dict[str, object]:
    at = "2026-02-19T10:00:01.000Z"
    message = {"sender": "Ann", "text": "hello\n\x1b[2Jthere", "at": at, "is_bot": False}
    return {
        "id": "m_1",
        "chat": "web:main",
        "state": "answered",
        "steps": [
            {"at": at, "what": "stored"},
            {"at": "2026-02-19T10:00:02.500Z", "what": "woke the chat", "why": "main"},
        ],
        "replies": [],
        "message": message,
        "said": [],
        **more,
    }


def test_a_fate_is_a_story() -> None:
    reply = {
        "id": "m_2",
        "sender": "Andy",
        "text": "good day",
        "at": "2026-02-19T10:01:06.000Z",
        "is_bot": True,
    }
    assert story(fate(replies=["m_2"], said=[reply])) == [
        "m_1 in web:main: answered",
        "",
        "  Ann said, 2026-02-19 10:00:01 UTC:",
        "    “hello \ufffd[2Jthere”",
        "",
        "    +0.0 s  stored",
        "    +1.5 s  woke the chat (main)",
        "",
        "  Andy, +1 min 5 s (m_2):",
        "    “good day”",
    ]


def test_a_story_tells_how_often_it_was_tried() -> None:
    step = {"at": "2026-02-19T10:00:01.000Z", "what": "given to the agent in turn t_1"}
    assert story(fate(steps=[step, step]))[-1] == "  It was given to the agent 2 times."


@pytest.mark.parametrize(
    ("state", "told", "more"),
    [
        ("running", "cut short by the end of the host", {}),
        ("queued", "queued", {}),
        ("failed", "failed", {"retry_at": "2026-02-19T10:00:09.000Z"}),
    ],
)
def test_nothing_runs_in_a_story_while_no_host_does(
    state: str, told: str, more: dict[str, str]
) -> None:
    served = story(fate(state=state, **more))
    unserved = story(fate(state=state, **more), is_served=False)
    assert served[0] == f"m_1 in web:main: {state}"
    assert unserved[0] == f"m_1 in web:main: {told}"
    assert "No host runs now" not in served[-1]
    assert unserved[-1].startswith("  No host runs now: it goes on when one is started")
    assert story(fate(), is_served=False) == story(fate()), "what is over needs nobody"


def test_a_long_text_is_cut_in_a_story() -> None:
    told = fate()
    told["message"] = {
        "sender": "Ann",
        "text": "x" * 999,
        "at": "2026-02-19T10:00:01Z",
        "is_bot": 1,
    }
    assert story(told)[3] == f"    “{'x' * 200}…” (999 characters)"


def test_events_are_read_from_their_lines() -> None:
    parser = Parser()
    lines = ["retry: 2000", "", ": still here", "", "id: 7", "event: message", 'data: {"a": 1}', ""]
    events = [event for line in lines if (event := parser.take(line)) is not None]
    assert events == [Event("message", {"a": 1}, "7")]


def test_a_host_that_listens_everywhere_is_called_here() -> None:
    assert reachable("http://0.0.0.0:3100") == "http://127.0.0.1:3100"
    assert reachable("http://[::]:3100") == "http://[::1]:3100"
    assert reachable("http://127.0.0.1:3100") == "http://127.0.0.1:3100"


def test_a_name_cannot_leave_its_step_of_the_address() -> None:
    assert in_path("web:main") == "web:main"
    assert in_path("../groups?x") == "..%2Fgroups%3Fx"


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 29, "1.5 GiB"),
        (2 << 40, "2.0 TiB"),
    ],
)
def test_bytes_are_told_in_fitting_units(count: int, told: str) -> None:
    assert screen.size(count) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.04, "0.0 s"),
        (9.5, "9.5 s"),
        (59.9, "59 s"),
        (61, "1 min 1 s"),
        (7200, "2 h"),
        (90_061, "1 d 1 h"),
    ],
)
def test_time_is_told_in_its_two_largest_units(seconds: float, told: str) -> None:
    assert screen.span(seconds) == told
