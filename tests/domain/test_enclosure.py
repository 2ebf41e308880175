"""Which file an agent means, and how it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.enclosure import (
    UNKNOWN_TYPE,
    Enclosure,
    FilePlace,
    media_type,
    mentioning,
    place_of,
)
from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.ids import EnclosureId, Folder

_PIECES = st.sampled_from(
    ["/", "..", ".", "workspace", "group", "global", "a.txt", "ä", "\0", "\n", "\u202e", "\udc80"]
)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("plan.pdf", ("plan.pdf",)),
        ("out/plan.pdf", ("out", "plan.pdf")),
        ("./out//plan.pdf", ("out", "plan.pdf")),
        ("/workspace/group/plan.pdf", ("plan.pdf",)),
        ("//workspace/./group/out/plan.pdf", ("out", "plan.pdf")),
        ("workspace/group/plan.pdf", ("workspace", "group", "plan.pdf")),
        ("...", ("...",)),
        ("a..b", ("a..b",)),
    ],
)
def test_a_file_is_named_as_its_agent_sees_it(path: str, parts: tuple[str, ...]) -> None:
    assert place_of(path, is_main=False) == FilePlace(parts=parts)


def test_main_may_name_a_file_that_all_groups_share() -> None:
    path = "/workspace/global/rules.md"
    assert place_of(path, is_main=True) == FilePlace(parts=("rules.md",), is_shared=True)
    with pytest.raises(InvalidRequestError, match="only the main group"):
        place_of(path, is_main=False)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "name one below"),
        ("/", "lies elsewhere"),
        (".", "name one below"),
        ("/workspace/group", "name one below"),
        ("/workspace/group/", "name one below"),
        ("/workspace", "lies elsewhere"),
        ("/workspace/groups/a", "lies elsewhere"),
        ("/workspace/ipc/input/a.json", "lies elsewhere"),
        ("/workspace/extra/docs/a", "lies elsewhere"),
        ("/etc/passwd", "lies elsewhere"),
        ("../family/secret", "'..'"),
        ("out/../../family/secret", "'..'"),
        ("/workspace/group/../../etc/passwd", "'..'"),
        ("/workspace/../workspace/group/a", "'..'"),
        ("..", "'..'"),
        ("a\0b", "no file can have"),
        ("\ud800", "no file can have"),
        ("x" * 5000, "no file can have"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(path: str, why: str) -> None:
    for is_main in (True, False):
        with pytest.raises(InvalidRequestError) as refusal:
            place_of(path, is_main=is_main)
        assert why in refusal.value.message
        assert len(refusal.value.message) < 400


@given(st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=40), st.booleans())
def test_no_path_leads_out_of_its_folder(path: str, is_main: bool) -> None:
    try:
        place = place_of(path, is_main=is_main)
    except InvalidRequestError:
        return
    assert place.parts
    for part in place.parts:
        assert part not in ("", ".", "..")
        assert "/" not in part
        assert "\0" not in part
    assert place.name.isprintable()
    assert is_main or not place.is_shared


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Grüße 東京.pdf", "Grüße 東京.pdf"),
        ("a\nb\r\tc\x1b[31m.txt", "a_b__c_[31m.txt"),
        ("invoice\u202efdp.exe", "invoice_fdp.exe"),
        ("\u2066x\u2069\u200b\ufeff", "_x___"),
        ("<b onload=x>.html", "<b onload=x>.html"),
    ],
)
def test_a_name_is_shown_on_one_line_in_reading_order(name: str, shown: str) -> None:
    assert FilePlace(parts=("out", name)).name == shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plan.pdf", "application/pdf"),
        ("PLAN.PDF", "application/pdf"),
        ("photo.jpg", "image/jpeg"),
        ("notes", UNKNOWN_TYPE),
        ("", UNKNOWN_TYPE),
        ("logs.tar.gz", UNKNOWN_TYPE),
        ("data:text/html,x", UNKNOWN_TYPE),
        ("http://example.com/a.html?x", UNKNOWN_TYPE),
    ],
)
def test_the_type_is_what_the_ending_says(name: str, expected: str) -> None:
    assert media_type(name) == expected


def test_files_are_mentioned_behind_the_words_or_alone() -> None:
    file = Enclosure(
        id=EnclosureId("f_1"), folder=Folder("main"), name="{0}.txt", size=1, type="text/plain"
    )
    assert mentioning("look", (), "({})") == "look"
    assert mentioning("look", (file,), "({})") == "look\n\n({0}.txt)"
    assert mentioning("", (file,), "({})") == "({0}.txt)"
