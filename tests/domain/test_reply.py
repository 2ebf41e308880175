"""What of an agent's words may leave the house."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.reply import MAX_CHARS, presentable, strip_internal

PIECES = st.sampled_from(
    [
        "secret",
        "<internal>",
        "</internal>",
        "<",
        ">",
        "/",
        "<internal/>",
        " ",
        "a",
        '<internal x="y">',
    ]
)


@pytest.mark.requirement("container.output.internal-stripped")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hello", "hello"),
        ("<internal>hm</internal>", ""),
        ("a <internal>hm</internal>b", "a b"),
        ("a<internal>1</internal>b<internal>2</internal>c", "abc"),
        ("<internal>1<internal>2</internal>3</internal>b", "b"),
        ('<internal kind="plan">hm</internal>b', "b"),
        ("<INTERNAL>hm</Internal>b", "b"),
        ("< internal >hm</ internal >b", "b"),
        ("<internal\n>hm\n</internal\n>b", "b"),
        ("a<internal>never closed", "a"),
        ("a</internal>b", "ab"),
        ("a<internal/>b", "ab"),
        ("<internalized> stays", "<internalized> stays"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("  hello \n", "hello"),
        ("", ""),
    ],
)
def test_internal_parts_never_leave(text: str, shown: str) -> None:
    assert presentable(text) == shown


@pytest.mark.parametrize("filler", ["x" * 300, "y" * 100_000])
def test_a_tag_with_endless_attributes_hides_all_the_same(filler: str) -> None:
    assert presentable(f'a<internal note="{filler}">secret</internal>b') == "ab"


@given(st.lists(PIECES, max_size=30).map("".join))
def test_what_stands_inside_a_tag_pair_is_never_shown(noise: str) -> None:
    inner = noise.replace("internal", "inner")

    assert presentable(f"before<internal>{inner} hidden </internal>after") == "beforeafter"


@given(st.text(st.characters(exclude_characters="<")))
def test_text_without_tags_is_only_trimmed(text: str) -> None:
    assert presentable(text) == text.strip()


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text",
    [
        "<" + " " * 300_000,
        "<internal" * 100_000,
        "< /" * 100_000,
        "<internal>" * 50_000 + "</internal>" * 50_000,
    ],
)
def test_no_text_takes_longer_than_its_length(text: str) -> None:
    strip_internal(text)
    strip_internal(text, hides_unclosed=False)


def test_no_result_says_nothing() -> None:
    assert presentable(None) == ""


def test_a_huge_reply_is_cut_and_says_so() -> None:
    shown = presentable("x" * (MAX_CHARS + 5))

    assert shown.startswith("x" * MAX_CHARS)
    assert shown.endswith("[cut here: the answer had 1,000,005 characters]")


@pytest.mark.requirement("prompt.text.internal-tags-stripped")
def test_a_person_who_types_the_tag_loses_nothing_that_follows() -> None:
    typed = "what is <internal> good for?"

    assert strip_internal(typed, hides_unclosed=False) == "what is  good for?"
    assert strip_internal("a<internal>b</internal>c", hides_unclosed=False) == "ac"
