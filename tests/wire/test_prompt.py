from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter_wire.errors import WireError
from hallporter_wire.prompt import Context, Utterance, format_messages, format_prompt, format_task
from hallporter_wire.reading import read_prompt
from tests.wire.golden_files import golden

CONTEXT = Context(
    now=datetime(2026, 2, 19, 10, 0, 5, tzinfo=UTC), timezone="Africa/Cairo", attempt=2, omitted=3
)
RETRY = replace(CONTEXT, sent=("I am on it.", 'two lines,\n"quoted" <b>'))
SAID = [
    Utterance(
        id="m1",
        at=datetime(2026, 2, 19, 10, 0, tzinfo=UTC),
        sender="James",
        text="@Andy can you check the weather?",
    ),
    Utterance(
        id="m2",
        at=datetime(2026, 2, 19, 11, 0, 1, 250_000, tzinfo=timezone(timedelta(hours=1))),
        sender='Zoë "Z" & Co',
        text="is 1 < 2 && 2 > 1?\r\nsecond line, مرحبا",
    ),
]


def said(text: str, *, sender: str = "James") -> Utterance:
    return Utterance(id="m1", at=CONTEXT.now, sender=sender, text=text)


@pytest.mark.requirement("prompt.xml.messages-element")
@pytest.mark.requirement("prompt.xml.one-message-element-each")
@pytest.mark.requirement("prompt.xml.sender-attribute")
@pytest.mark.requirement("prompt.xml.time-attribute")
@pytest.mark.rule("R16")
def test_a_prompt_is_the_context_line_and_the_messages_and_nothing_else() -> None:
    assert format_prompt(SAID, CONTEXT) == golden("prompt.txt").decode()


@pytest.mark.rule("R16")
def test_a_task_is_the_context_line_and_its_own_text() -> None:
    assert format_task("Say <good morning> & count to 3", CONTEXT) == golden("task.txt").decode()


@pytest.mark.rule("R13", "R16")
def test_what_earlier_attempts_have_sent_stands_in_the_context_line() -> None:
    assert format_prompt(SAID, RETRY) == golden("prompt-retry.txt").decode()
    assert format_task("Say good morning", RETRY) == golden("task-retry.txt").decode()


@given(sent=st.lists(st.text(), max_size=3))
def test_whatever_was_sent_the_context_is_one_line(sent: list[str]) -> None:
    context = replace(CONTEXT, sent=tuple(sent))

    first, *_ = format_task("do it", context).split("\n")
    reading = read_prompt(format_task("do it", context))

    assert first.startswith("<context ")
    assert first.endswith(">")
    assert [heard.text for heard in reading.heard] == ["do it"]
    assert len(reading.sent) == len(sent)


@given(sent=st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]))))
def test_what_was_sent_is_read_back_word_for_word(sent: list[str]) -> None:
    context = replace(CONTEXT, sent=tuple(sent))
    assert read_prompt(format_prompt(SAID, context)).sent == tuple(sent)


@pytest.mark.requirement("prompt.entry.message-element")
@pytest.mark.requirement("prompt.entry.id-attribute")
@pytest.mark.requirement("prompt.entry.timestamp-attribute")
@pytest.mark.requirement("prompt.entry.sender-attribute")
@pytest.mark.requirement("prompt.entry.role-attribute")
def test_messages_have_the_shape_of_document_000() -> None:
    assert format_messages(SAID) == json.loads(golden("messages-000.json"))


@pytest.mark.requirement("prompt.xml.escaped")
@given(text=st.text(), sender=st.text())
def test_no_text_and_no_name_can_break_out_of_its_message(text: str, sender: str) -> None:
    reading = read_prompt(format_prompt([said(text, sender=sender), said("second")], CONTEXT))
    assert [heard.text for heard in reading.heard][1:] == ["second"]
    assert (reading.now, reading.timezone, reading.attempt) == (CONTEXT.now, "Africa/Cairo", 2)


@given(
    text=st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"])),
    sender=st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"])),
)
def test_what_was_said_is_read_back_word_for_word(text: str, sender: str) -> None:
    (heard,) = read_prompt(format_prompt([said(text, sender=sender)], CONTEXT)).heard
    assert (heard.sender, heard.text) == (sender, text.strip())


def test_what_xml_cannot_hold_is_replaced() -> None:
    (heard,) = read_prompt(format_prompt([said("bell\x07 half\ud800 end\uffff")], CONTEXT)).heard
    assert heard.text == "bell\ufffd half\ufffd end\ufffd"


def test_a_name_keeps_its_line_feed_and_tab() -> None:
    (heard,) = read_prompt(format_prompt([said("hi", sender="a\n\tb")], CONTEXT)).heard
    assert heard.sender == "a\n\tb"


def test_an_unknown_time_zone_is_named_in_the_error() -> None:
    context = Context(now=CONTEXT.now, timezone="Mars/Olympus", attempt=1, omitted=0)
    with pytest.raises(WireError, match="'Mars/Olympus' is no time zone"):
        format_prompt(SAID, context)


def test_entries_of_document_000_are_read_too() -> None:
    reading = read_prompt("\n".join(["<messages>", *format_messages(SAID), "</messages>"]))
    assert [heard.sender for heard in reading.heard] == ["James", 'Zoë "Z" & Co']
    assert reading.heard[1].text == "is 1 < 2 && 2 > 1?\nsecond line, مرحبا"


@pytest.mark.parametrize(
    "prompt",
    [
        "just words",
        "<messages> but not XML",
        "<b>bold</b>",
        "<messages></messages> and more",
        '<!DOCTYPE m [<!ENTITY a "b">]><messages><message>&a;</message></messages>',
        "",
    ],
)
def test_anything_else_is_one_message_by_nobody(prompt: str) -> None:
    (heard,) = read_prompt(prompt).heard
    assert (heard.sender, heard.text) == ("", prompt)


def test_a_context_line_with_odd_values_is_still_one() -> None:
    reading = read_prompt('<context now="soon" attempt="many"/>\ndo it')
    assert (reading.now, reading.attempt, reading.heard[0].text) == (None, 1, "do it")
