"""Names in a group, and whose words count in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.group import (
    MAX_SENDER,
    MAX_SENDERS,
    Others,
    SenderChange,
    SenderRule,
    check_assistant_name,
    check_senders,
)

RULE = SenderRule(allow=frozenset({"ada@net"}), others=Others.STORE)


@pytest.mark.parametrize("sender", ["Ada@net", "ada@net ", "ada", "", "bob@net"])
def test_a_sender_is_matched_exactly(sender: str) -> None:
    assert RULE.allows("ada@net")
    assert not RULE.allows(sender)


@given(st.text())
def test_an_empty_list_allows_nobody(sender: str) -> None:
    assert not SenderRule(allow=frozenset()).allows(sender)


def test_only_what_is_given_of_a_rule_changes() -> None:
    bob = frozenset({"bob@net"})

    assert SenderChange(allow=bob).of(RULE) == SenderRule(allow=bob, others=Others.STORE)
    assert SenderChange(others=Others.IGNORE).of(RULE) == SenderRule(allow=RULE.allow)
    assert SenderChange(allow=frozenset()).of(None) == SenderRule(allow=frozenset())


def test_where_everyone_may_talk_there_are_no_others() -> None:
    with pytest.raises(InvalidRequestError, match="say as well who is allowed"):
        SenderChange(others=Others.STORE).of(None)


@pytest.mark.parametrize(
    "names", [[""], ["a\nb"], ["x" * (MAX_SENDER + 1)], [str(n) for n in range(MAX_SENDERS + 1)]]
)
def test_a_list_that_cannot_be_is_refused(names: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_senders(names)
    assert caught.value.facts["field"] == "senders"


@pytest.mark.parametrize("name", ["", "  ", "x" * 65, "An\ndy", "An\u2028dy", "An\x1bdy"])
def test_an_assistants_name_is_one_short_line(name: str) -> None:
    assert check_assistant_name(" Dr. Who ") == "Dr. Who"
    with pytest.raises(InvalidRequestError, match="one line of 1 to 64 characters"):
        check_assistant_name(name)
