"""Which messages wake their chat."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.group import Group
from hallporter.domain.ids import ChatId, Folder
from hallporter.domain.message import Inbound
from hallporter.domain.slash import parse_slash
from hallporter.domain.trigger import (
    MAX_LENGTH,
    after_word,
    check_trigger,
    default_trigger,
    is_trigger,
    wake,
)

NOW = datetime(2026, 2, 19, 10, 0, tzinfo=UTC)
LETTERS = st.text(st.characters(categories=["L"]), min_size=1, max_size=20)


def group(*, trigger: str = "@Andy", requires_trigger: bool = True, is_main: bool = False) -> Group:
    return Group(
        chat=ChatId("fake:family"),
        name="Family",
        folder=Folder("family"),
        trigger=trigger,
        requires_trigger=requires_trigger,
        is_main=is_main,
        added_at=NOW,
    )


def said(text: str, *, mentions_us: bool = False) -> Inbound:
    return Inbound(
        chat=ChatId("fake:family"),
        ext_id="1",
        sender="ada",
        sender_name="Ada",
        text=text,
        sent_at=NOW,
        mentions_us=mentions_us,
    )


@pytest.mark.requirement("trigger.pattern.plain-word")
@pytest.mark.requirement("trigger.pattern.default")
@pytest.mark.parametrize(
    "text",
    [
        "@Andy",
        "@Andy what time is it?",
        "  @andy hello",
        "@ANDY!",
        "@Andy's turn",
        "@Andy\nhello",
        "@Andy, hello",
        "@Andy-san",
    ],
)
def test_a_plain_word_wakes_at_the_start_of_a_message_in_any_letter_case(text: str) -> None:
    assert is_trigger("@Andy", text)


@pytest.mark.requirement("trigger.pattern.default")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Andy",
        "hello @Andy",
        "@Andyx",
        "@Andy2",
        "@Andy_the_bot",
        "@And",
        "@Andý",
        "@Andy\u0301",  # an accent on the last letter makes it another letter
        "@Andyи",
        "＠Andy",
    ],
)
def test_a_plain_word_does_not_wake_elsewhere_or_as_part_of_another_word(text: str) -> None:
    assert not is_trigger("@Andy", text)


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("@مساعد", "@مساعد كم الساعة؟"),
        ("@小助手", "@小助手，现在几点？"),
        ("@José", "@josé ¿qué hora es?"),
        ("@José", "@Jose\u0301 hola"),
        ("@Jose\u0301", "@José hola"),
        ("@Strauß", "@STRAUSS, bitte"),
        ("@Ανδρέας", "@ΑΝΔΡΈΑΣ γεια"),
        ("@अर्जुन", "@अर्जुन नमस्ते"),
    ],
)
def test_words_of_other_scripts_work_composed_or_not(trigger: str, text: str) -> None:
    assert is_trigger(trigger, text)


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("@مساعد", "@مساعدة"),
        ("@小助手", "@小助手们好"),
        ("@José", "@Joséphine"),
        ("@Jose", "@José"),
        ("@अर्जु", "@अर्जुन"),
    ],
)
def test_words_of_other_scripts_end_where_their_script_says(trigger: str, text: str) -> None:
    assert not is_trigger(trigger, text)


@given(word=LETTERS, rest=st.text(max_size=30))
def test_a_word_followed_by_a_space_always_wakes_and_glued_to_a_digit_never(
    word: str, rest: str
) -> None:
    assert is_trigger(f"@{word}", f"@{word} {rest}")
    assert not is_trigger(f"@{word}", f"@{word}7{rest}")


def test_what_follows_the_word_is_given_whatever_form_its_accents_have() -> None:
    assert after_word("@Jose\u0301 /stop", "@José") == " /stop"
    assert after_word("@José", "@José") == ""
    assert after_word("@Joséphine", "@José") is None


@pytest.mark.requirement("trigger.pattern.per-group")
@pytest.mark.parametrize(
    ("pattern", "text", "wakes"),
    [
        (r"^@Andy\b", "@andy hi", True),
        (r"^@Andy\b", "hi @andy", False),
        (r"\b(andy|bot)\b", "dear Bot, hello", True),
        (r"weather\?$", "what about the WEATHER?", True),
        (r"weather\?$", "weather? no", False),
        (r"天气", "今天天气怎么样", True),
        ("@", "write to me@example.org", True),
    ],
)
def test_anything_but_a_plain_word_is_a_regular_expression_that_is_searched(
    pattern: str, text: str, wakes: bool
) -> None:
    assert is_trigger(check_trigger(pattern), text) is wakes


@pytest.mark.timeout(10)
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_an_evil_pattern_costs_no_more_than_the_text_is_long(pattern: str) -> None:
    assert not is_trigger(check_trigger(pattern), "a" * 50_000 + "!")


@pytest.mark.parametrize("pattern", ["(", "[a", r"(?<=x)y", r"(a)\1", "*", "a{2000}"])
def test_a_bad_pattern_is_refused_with_what_is_wrong(pattern: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a valid pattern") as caught:
        check_trigger(pattern)
    assert caught.value.facts["field"] == "trigger"


@pytest.mark.parametrize("pattern", ["", "   ", "x" * (MAX_LENGTH + 1)])
def test_a_trigger_has_a_length(pattern: str) -> None:
    with pytest.raises(InvalidRequestError, match="1 to 256 characters"):
        check_trigger(pattern)


def test_a_trigger_is_trimmed() -> None:
    assert check_trigger("  @Andy ") == "@Andy"


@pytest.mark.requirement("trigger.required.only-matching-forwarded")
def test_a_group_with_a_trigger_wakes_by_trigger_or_mention_only() -> None:
    assert wake(group(), said("@Andy hello")).wakes
    assert wake(group(), said("hello", mentions_us=True)).why == "mentioned"
    silent = wake(group(), said("hello"))
    assert not silent.wakes
    assert silent.why == "no trigger"


@pytest.mark.requirement("trigger.required.off-forwards-all")
def test_a_group_without_a_trigger_rule_wakes_by_every_message() -> None:
    assert wake(group(requires_trigger=False), said("hello")).wakes


@pytest.mark.requirement("trigger.required.main-never")
def test_the_main_group_needs_no_trigger_whatever_its_rule_says() -> None:
    assert wake(group(is_main=True), said("hello")).why == "main group"


def test_a_text_of_accents_alone_is_judged_at_once() -> None:
    text = "@a" + "\u0300\u0316" * 500_000  # the square of this many would take minutes

    assert not is_trigger("@Andy", text)
    assert parse_slash(text, "@Andy") is None


@pytest.mark.requirement("trigger.pattern.default")
@pytest.mark.parametrize("name", ["Dr. Who", "C++", "(", "Ana María", "الحارس الليلي", "小助 手"])
def test_any_name_can_be_addressed_by_its_default_trigger(name: str) -> None:
    trigger = check_trigger(default_trigger(name))

    assert is_trigger(trigger, f"@{name}")
    assert is_trigger(trigger, f"  @{name.upper()}, hello")
    assert not is_trigger(trigger, f"@{name}x")
    assert not is_trigger(trigger, f"ask @{name}")
    assert not is_trigger(trigger, f"{name}, hello")


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=64))
def test_every_name_makes_a_trigger_that_its_own_address_wakes(name: str) -> None:
    assert is_trigger(check_trigger(default_trigger(name)), f"@{name} hello")
