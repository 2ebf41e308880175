from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hallporter.channels.splitting import MIN_LIMIT, split

LIMITS = st.integers(MIN_LIMIT, 120)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="`~"), min_size=1, max_size=40)
PARAGRAPHS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
CODE = st.lists(st.text("ab c\t(){}", max_size=50), max_size=12).map(
    lambda lines: "\n".join(["```python", *lines, "```"])
)
DOCUMENTS = st.lists(PARAGRAPHS | CODE, max_size=6).map("\n\n".join)


def content(text: str) -> str:
    """Without white space and without the lines that begin or end a code block."""
    kept = [line for line in text.split("\n") if not line.startswith("```")]
    return "".join("".join(kept).split())


@given(DOCUMENTS, LIMITS)
@example("a" * 100, 20)
def test_every_part_is_within_the_limit(text: str, limit: int) -> None:
    assert all(len(part) <= limit for part in split(text, limit))


@given(DOCUMENTS, LIMITS)
def test_nothing_but_white_space_at_the_cuts_is_left_out(text: str, limit: int) -> None:
    assert "".join(content(part) for part in split(text, limit)) == content(text)


@given(st.text("`~ab \n", max_size=300), LIMITS)
def test_odd_fences_lose_nothing_either(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert all(len(part) <= limit for part in parts)
    letters = "".join(letter for part in parts for letter in part if letter in "ab")
    # A block's opening line is repeated, its letters too: they may be more, never fewer.
    remaining = iter(letters)
    assert all(letter in remaining for letter in text if letter in "ab")


@given(DOCUMENTS, LIMITS)
def test_every_part_has_its_code_blocks_whole(text: str, limit: int) -> None:
    for part in split(text, limit):
        marks = [line for line in part.split("\n") if line.startswith("```")]
        assert marks == ["```python", "```"] * (len(marks) // 2)


@given(DOCUMENTS, LIMITS)
def test_there_is_always_a_part_and_none_is_blank_beside_others(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert parts
    assert len(parts) == 1 or all(part.strip() for part in parts)


def test_a_text_within_the_limit_is_left_as_it_is() -> None:
    assert split("  kept \n\n as it is ", 20) == ("  kept \n\n as it is ",)


def test_a_cut_goes_to_the_paragraph_first() -> None:
    assert split("one two\n\nthree\nfour five six", 20) == ("one two", "three\nfour five six")


def test_without_a_paragraph_the_line_is_cut() -> None:
    assert split("one two\nthree four five six", 20) == ("one two", "three four five six")


def test_without_a_line_the_word_is_cut() -> None:
    assert split("one two three four five", 20) == ("one two three four", "five")


def test_a_word_longer_than_the_limit_is_cut_hard() -> None:
    assert split("x" * 45, 20) == ("x" * 20, "x" * 20, "x" * 5)


def test_a_code_block_that_fits_goes_whole_into_the_next_part() -> None:
    text = "Look at this:\n```py\na = 1\nb = 2\n```"
    assert split(text, 30) == ("Look at this:", "```py\na = 1\nb = 2\n```")


def test_a_code_block_that_must_be_broken_is_closed_and_opened_again() -> None:
    text = "```py\n" + "\n".join(f"line {n}" for n in range(6)) + "\n```\nand on"
    assert split(text, 30) == (
        "```py\nline 0\nline 1\nline 2\n```",
        "```py\nline 3\nline 4\nline 5\n```",
        "and on",
    )


def test_the_indentation_of_code_survives_a_cut() -> None:
    text = "```\nif a:\n    b = 1\n    c = 2\n    d = 3\n```"
    assert split(text, 28)[1].startswith("```\n    ")


def test_a_limit_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="20 is the least"):
        split("text", 19)
