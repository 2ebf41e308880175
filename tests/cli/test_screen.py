from __future__ import annotations

from hallporter.cli.events import Event, Parser
from hallporter.cli.explain import story
from hallporter.cli.host import in_path, reachable
from hallporter.cli.screen import moment, plain_table


def test_plain_columns_are_aligned() -> None:
    assert plain_table(("a", "long name"), [("wide cell", "x"), ("y", "z")]) == [
        "A          LONG NAME",
        "wide cell  x",
        "y          z",
    ]


def test_a_moment_is_readable() -> None:
    assert moment("2026-02-19T10:00:01.123456Z") == "2026-02-19 10:00:01 UTC"
    assert moment(None) == ""


def test_a_story_has_times_events_and_reasons() -> None:
    at = "2026-02-19T10:00:01Z"
    fate = {
        "id": "m_1",
        "chat": "web:main",
        "state": "answered",
        "steps": [{"at": at, "what": "stored"}, {"at": at, "what": "woke the chat", "why": "main"}],
        "replies": ["m_2"],
    }
    assert story(fate) == [
        "m_1 in web:main: answered",
        "  2026-02-19 10:00:01 UTC  stored",
        "  2026-02-19 10:00:01 UTC  woke the chat (main)",
        "  replies: m_2",
    ]


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
