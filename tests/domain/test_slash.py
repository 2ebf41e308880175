"""What people say to the host itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.slash import SAYS, Slash, parse_slash


@pytest.mark.parametrize(
    ("text", "slash"),
    [
        ("/stop", Slash.STOP),
        ("  /STOP ", Slash.STOP),
        ("/new", Slash.NEW),
        ("/stop@andy_bot", Slash.STOP),
        ("@Andy /help", Slash.HELP),
        ("@andy   /whoami", Slash.WHOAMI),
        ("@Andy, /help", None),
        ("@Andyx /help", None),
        ("/stop it now", None),
        ("/stop\nplease", None),
        ("/unknown", None),
        ("/", None),
        ("//stop", None),
        ("stop", None),
        ("please /stop", None),
        ("", None),
    ],
)
def test_a_slash_line_is_one_known_word_also_behind_the_trigger(
    text: str, slash: Slash | None
) -> None:
    assert parse_slash(text, "@Andy") is slash


def test_a_trigger_with_accents_is_found_composed_or_not() -> None:
    assert parse_slash("@Jose\u0301 /stop", "@José") is Slash.STOP
    assert parse_slash("@JOSÉ /Stop", "@Jose\u0301") is Slash.STOP


def test_a_regular_expression_as_trigger_hides_no_slash_line() -> None:
    assert parse_slash("/status", r"^@(andy|bot)\b") is Slash.STATUS


@given(st.text(max_size=50), st.text(min_size=1, max_size=10))
def test_any_text_is_either_a_known_word_or_none(text: str, trigger: str) -> None:
    assert parse_slash(text, trigger) in {*Slash, None}


def test_help_has_a_line_for_every_word() -> None:
    assert set(SAYS) == set(Slash)
