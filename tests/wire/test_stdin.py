from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter_wire.errors import WireError
from hallporter_wire.reading import read_prompt
from hallporter_wire.stdin import AgentInput, decode_input, encode_input
from tests.wire.golden_files import assert_fits, golden

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
inputs = st.builds(
    AgentInput,
    prompt=words,
    session_id=st.none() | words,
    group_folder=words,
    chat_jid=words,
    is_main=st.booleans(),
    is_scheduled_task=st.booleans(),
    assistant_name=words.filter(bool),
    secrets=st.dictionaries(words, words),
    messages=st.lists(words).map(tuple),
    tasks_snapshot=st.none() | words,
    groups_snapshot=st.none() | words,
    task_context=st.none() | words,
    through=st.none() | st.integers(min_value=0),
)


@given(agent_input=inputs)
def test_what_is_encoded_is_decoded_again(agent_input: AgentInput) -> None:
    assert decode_input(encode_input(agent_input)) == agent_input


@pytest.mark.requirement("container.stdin.prompt")
@pytest.mark.requirement("container.stdin.session-id")
@pytest.mark.requirement("container.stdin.group-folder")
@pytest.mark.requirement("container.stdin.chat-jid")
@pytest.mark.requirement("container.stdin.assistant-name")
@pytest.mark.requirement("container.stdin.secrets")
@pytest.mark.requirement("container.stdin.messages")
@pytest.mark.rule("R2")
def test_the_object_carries_the_fields_of_both_dialects_and_through() -> None:
    written = encode_input(decode_input(golden("input.json")))
    assert json.loads(written) == json.loads(golden("input.json"))


@pytest.mark.parametrize("schema", ["input", "input-000", "input-001"])
@pytest.mark.parametrize("name", ["input.json", "input-000.json", "input-001.json"])
def test_what_we_write_fits_every_dialect(name: str, schema: str) -> None:
    assert_fits(encode_input(decode_input(golden(name))), schema)


def test_document_000_without_a_prompt_gets_one_from_its_messages() -> None:
    decoded = decode_input(golden("input-000.json"))
    assert [(h.sender, h.text) for h in read_prompt(decoded.prompt).heard] == [
        ("James", "hello"),
        ("Mina", "@Andy 1 < 2?"),
    ]
    assert not decoded.is_main


def test_a_task_of_document_000_is_prompted_by_its_context() -> None:
    decoded = decode_input(golden("input-000-task.json"))
    assert (decoded.prompt, decoded.is_scheduled_task) == ("Send the daily summary", True)


def test_document_001_may_leave_out_the_name() -> None:
    decoded = decode_input(golden("input-001.json"))
    assert (decoded.assistant_name, decoded.is_main, decoded.through) == ("Andy", True, None)


def test_secrets_do_not_show_in_a_log_line() -> None:
    assert "made-up" not in repr(decode_input(golden("input.json")))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"prompt": 7}, "prompt: must be a string, not the number 7"),
        ({"prompt": None, "messages": [], "taskContext": None}, "prompt: is missing"),
        ({"groupFolder": None}, "groupFolder: is missing"),
        ({"chatJid": ["x"]}, "chatJid: must be a string, not a list"),
        ({"isMain": "yes"}, "isMain: must be true or false, not a string"),
        ({"messages": "hello"}, "messages: must be a list of strings, not a string"),
        ({"messages": [None]}, "messages: must be strings throughout, not null"),
        ({"secrets": ["x"]}, "secrets: must be an object of strings, not a list"),
        ({"secrets": {"KEY": {}}}, "secrets: must be strings throughout, not an object"),
        ({"through": True}, "through: must be a whole number from 0 up, not a boolean"),
        ({"through": -1}, "through: must be a whole number from 0 up, not the number -1"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], complaint: str) -> None:
    fields = json.loads(golden("input.json")) | change
    with pytest.raises(WireError) as caught:
        decode_input(json.dumps(fields).encode())
    assert str(caught.value).startswith(complaint)
    assert caught.value.field == complaint.partition(":")[0]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000])
def test_what_is_not_json_is_called_so(data: bytes) -> None:
    with pytest.raises(WireError, match="not JSON"):
        decode_input(data)


def test_a_list_is_no_input() -> None:
    with pytest.raises(WireError, match="must be a JSON object, not a list"):
        decode_input(b"[]")
