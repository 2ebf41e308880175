from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter_wire.errors import WireError
from hallporter_wire.follow_up import (
    Close,
    FollowUp,
    decode_follow_up,
    encode_follow_up,
    file_name,
)
from tests.wire.golden_files import assert_fits, golden

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    follow_up=st.builds(
        FollowUp, text=words, content=words, through=st.none() | st.integers(min_value=0)
    )
)
def test_what_is_encoded_is_decoded_again(follow_up: FollowUp) -> None:
    assert decode_follow_up(encode_follow_up(follow_up)) == follow_up


@pytest.mark.requirement("input.file.type")
@pytest.mark.requirement("input.file.text")
@pytest.mark.requirement("input.file.content")
@pytest.mark.rule("R2")
def test_a_file_carries_both_dialects_and_through() -> None:
    read = decode_follow_up(golden("follow-up.json"))
    assert isinstance(read, FollowUp)
    assert encode_follow_up(read) + b"\n" == golden("follow-up.json")
    assert_fits(encode_follow_up(read), "follow-up")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("follow-up-000.json", "and tomorrow?"),
        ("follow-up-001.json", "<messages>...</messages>"),
    ],
)
def test_either_field_is_enough(name: str, words: str) -> None:
    assert decode_follow_up(golden(name)) == FollowUp(text=words, content=words)


@pytest.mark.requirement("input.close.object")
def test_the_close_object_is_understood() -> None:
    assert decode_follow_up(golden("close-000.json")) == Close()


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "type: is missing"),
        ({"type": "dance", "text": "x"}, "type: must be 'message' or '_close', not 'dance'"),
        ({"type": "message"}, "text: is missing, and so is content"),
        ({"type": "message", "text": 1}, "text: must be a string"),
        ({"type": "message", "text": "x", "content": []}, "content: must be a string"),
        ({"type": "message", "text": "x", "through": "3"}, "through: must be a whole number"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_follow_up(json.dumps(fields).encode())
    assert str(caught.value).startswith(complaint)


@given(st.lists(st.integers(min_value=0, max_value=10**12 - 1)))
def test_file_names_sort_like_their_numbers(numbers: list[int]) -> None:
    assert sorted(map(file_name, numbers)) == [file_name(number) for number in sorted(numbers)]
