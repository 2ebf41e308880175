"""Other people's words cannot command the operator's terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest

from hallporter.cli import screen
from hallporter.cli.explain import story
from hallporter.cli.logs import _show as show_entry
from hallporter.cli.view import Plain, Terminal
from hallporter.domain.terminal import escaped, harmless

ATTACKS = {
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "clear screen": "\x1b[2J",
    "C1": "\x9b2J",
    "backspaces": "\b\b\b\r",
    "overrides": "\u202e\u2066",
    "half a character": "\ud800",
}
COMMANDS = set("\x1b\x07\x9b\b\r\u202e\u2066\ud800")


@pytest.fixture(params=list(ATTACKS.values()), ids=list(ATTACKS))
def attack(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return f"before {found} after"


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def message(text: str, sender: str = "Andy") -> dict[str, object]:
    at = "2026-02-19T10:00:00Z"
    return {"id": "m_1", "is_bot": True, "sender": sender, "text": text, "at": at}


def test_lines_and_tabs_stay() -> None:
    assert harmless("one\n\ttwo é 漢 😀 \u200f\r\n") == "one\n\ttwo é 漢 😀 \u200f\n"


def test_a_reply_that_is_piped_on(attack: str, capsys: pytest.CaptureFixture[str]) -> None:
    Plain().show(message(attack))

    out = capsys.readouterr().out
    assert COMMANDS.isdisjoint(out)
    assert out.startswith("before \ufffd")
    assert out.endswith(" after\n")


def test_a_note_beside_the_result(attack: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen.note(attack)

    assert COMMANDS.isdisjoint(capsys.readouterr().err)


def test_a_story(attack: str, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [{"at": "2026-02-19T10:00:01Z", "what": "failed", "why": attack}]
    fate = {
        "id": "m_1",
        "chat": "web:main",
        "state": "failed",
        "steps": steps,
        "replies": [],
        "message": message(attack, attack),
        "said": [message(attack, attack)],
    }

    screen.show("\n".join(story(fate)))

    assert COMMANDS.isdisjoint(capsys.readouterr().out)


def test_what_was_taken_out_of_a_story_is_marked() -> None:
    assert screen.clean("one\x1b[2J\n\ttwo 👩\u200d🔬") == "one\ufffd[2J two 👩\u200d🔬"


def test_a_cell_makes_no_row_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    screen.show_table(("folder", "why"), [("family", "it broke\nmain    all is well")])

    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_field_is_one_line_with_names_in_place_of_commands(attack: str) -> None:
    told = escaped(f"{attack}\n\u2028two 👩\u200d🔬")

    assert COMMANDS.isdisjoint(told)
    assert len(told.splitlines()) == 1
    assert "\\" in told
    assert told.endswith("two 👩\u200d🔬")


@pytest.mark.parametrize("as_json", [True, False])
def test_an_entry_of_the_log(
    attack: str, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = [{"exc_type": "ValueError", "exc_value": attack, "frames": []}]
    entry = {"event": attack, "level": "info", "why": attack, attack: 1, "exception": trace}

    show_entry(entry, as_json=as_json)

    out = capsys.readouterr().out
    assert COMMANDS.isdisjoint(out)
    assert not as_json or json.loads(out) == entry


def test_a_plain_table(attack: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen.show_table(("folder", "name"), [("family", attack)])

    assert COMMANDS.isdisjoint(capsys.readouterr().out)


def test_a_framed_table(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Tty()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", "dumb")  # without the colours of our own

    screen.show_table(("folder", "name"), [("family", attack)])

    assert "before" in out.getvalue()
    assert COMMANDS.isdisjoint(out.getvalue())


@pytest.mark.parametrize(
    "form", ["{}", "# {}", "`{}`", "```sh\n{}\n```", "- {}", "| a |\n|-|\n|{}|"]
)
def test_a_reply_at_a_terminal(attack: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert COMMANDS.isdisjoint(at_terminal(message(form.format(attack), attack), monkeypatch))


@pytest.mark.parametrize(
    "text",
    ["&#x202e;", "&#27;[2J", "[bank](https://evil.example/&#x202e;)", "![x](https://e.example)"],
)
def test_names_and_links_of_markdown(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert COMMANDS.isdisjoint(at_terminal(message(text), monkeypatch))


def test_a_link_shows_where_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    text = message("[your bank](https://evil.example)")

    assert "https://evil.example" in at_terminal(text, monkeypatch)


def at_terminal(told: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal gets, without the prompt's own way of clearing its line."""
    out = Tty()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", "dumb")
    Terminal().show(told)
    return out.getvalue().replace("\r\x1b[2K", "")


def test_json_names_them_and_loses_nothing(attack: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen.show_json({"name": attack})

    out = capsys.readouterr().out
    assert COMMANDS.isdisjoint(out)
    assert json.loads(out) == {"name": attack}
