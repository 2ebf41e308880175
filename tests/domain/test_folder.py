"""Folder names become paths and mounts."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.folder import MAX_LENGTH, parse_folder


@pytest.mark.requirement("group.folder.rule")
@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True))
def test_letters_digits_underscore_and_hyphen_make_a_folder(name: str) -> None:
    if name.casefold() not in {"global", "errors"}:
        assert parse_folder(name) == name


@given(st.text(max_size=80))
def test_whatever_is_accepted_is_one_safe_step_of_a_path(name: str) -> None:
    try:
        folder = parse_folder(name)
    except InvalidRequestError:
        return
    assert PurePosixPath("/groups", folder).parts == ("/", "groups", name)
    assert folder.isascii()
    assert 1 <= len(folder) <= MAX_LENGTH
    assert not folder.startswith((".", "-", "_"))


@pytest.mark.requirement("group.folder.rule")
@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../etc", "a/b", "-rf", "_x", "a b", "familie\n", "café", "a.b", "x" * 65, "٣"],
)
def test_other_names_are_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="use letters, digits"):
        parse_folder(name)


@pytest.mark.parametrize("name", ["global", "Global", "ERRORS"])
def test_reserved_names_are_refused_in_any_letter_case(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="reserved"):
        parse_folder(name)
