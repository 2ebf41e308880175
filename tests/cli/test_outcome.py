from __future__ import annotations

from typing import Any

import pytest

from hallporter.cli.outcome import (
    Answered,
    Hopeless,
    Noticed,
    Outcome,
    Pending,
    Silent,
    outcome,
    replies,
    spoken,
)


def fate(state: str, turn: str | None = None, why: str = "") -> dict[str, Any]:
    steps = [{"at": "", "what": "stored"}, {"at": "", "what": "something", "why": why}]
    found: dict[str, Any] = {"id": "m", "state": state, "steps": steps, "replies": []}
    return found if turn is None else {**found, "turn": {"id": "t", "state": turn}}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (fate("queued"), Pending()),
        (fate("queued", "interrupted"), Pending()),
        (fate("running", "running"), Pending()),
        (fate("answered", "running"), Pending()),
        (fate("silent", "running"), Pending()),
        (fate("answered", "answered"), Answered("t")),
        (fate("silent", "silent"), Silent()),
        (fate("command"), Noticed()),
    ],
)
def test_only_the_end_of_the_turn_settles_a_message(
    told: dict[str, Any], expected: Outcome
) -> None:
    assert outcome(told) == expected


@pytest.mark.parametrize(
    "state", ["ignored", "unregistered", "waiting", "omitted", "stopped", "failed", "gave_up"]
)
def test_where_no_answer_comes_the_reason_is_told(state: str) -> None:
    found = outcome(fate(state, why="the moon"))
    assert isinstance(found, Hopeless)
    assert "the moon" in found.why


MESSAGES = [
    {"text": "mine", "is_bot": False, "turn": "t"},
    {"text": "notice", "is_bot": True},
    {"text": "one", "is_bot": True, "turn": "t"},
    {"text": "other", "is_bot": True, "turn": "u"},
    {"text": "two", "is_bot": True, "turn": "t"},
    {"text": "later notice", "is_bot": True},
]


def test_the_replies_are_those_of_the_turn() -> None:
    assert replies(MESSAGES, Answered("t")) == ["one", "two"]


def test_a_command_is_answered_by_the_notice_behind_it() -> None:
    assert replies(MESSAGES, Noticed()) == ["notice"]


def test_silence_has_no_replies() -> None:
    assert replies(MESSAGES, Silent()) == []


def test_the_files_of_a_reply_stand_behind_its_words_or_alone() -> None:
    file = {"name": "a\x1b\n.txt", "size": 2048, "url": "/api/chats/web:main/files/f_1"}
    line = "[file a\ufffd .txt, 2.0 KiB: /api/chats/web:main/files/f_1]"
    assert spoken({"text": "look", "files": [file]}) == f"look\n{line}"
    assert spoken({"text": "", "files": [file]}) == line
    assert spoken({"text": "look"}) == "look"
