from __future__ import annotations

import pytest

from bench.figures import Figure, sampled
from bench.peers import NAMES, PUBLISHED
from bench.table import HEADINGS, markdown, number, text

FIGURES = [
    sampled("warm.file", "follow-up → input file", "ms", [3.0, 4.0, 5.0], at_most=10.0),
    Figure(key="rss.100", what="memory", unit="MB", value=95.0, at_most=90.0),
    Figure(key="burst.time", what="burst", unit="s", value=3.0, n=200),
]


def test_columns_stand_below_their_headings() -> None:
    headings, *lines = text(FIGURES).splitlines()
    assert len(lines) == len(FIGURES)
    assert lines[0].index("4.00 ms") == headings.index("median")
    assert lines[0].index("621 ms") == headings.index(NAMES[0])


def test_a_missed_goal_is_marked_and_a_met_one_is_not() -> None:
    met, missed, without = text(FIGURES).splitlines()[1:]
    assert "MISSED" not in met
    assert "MISSED" in missed
    assert "met" not in without
    assert "MISSED" not in without


def test_what_cannot_be_told_in_a_number_is_told_in_words() -> None:
    assert "20 of 200 answered" in text(FIGURES)


def test_notes_on_peers_stand_on_the_page_only() -> None:
    assert "(p95 1906)" in markdown(FIGURES)
    assert "(p95 1906)" not in text(FIGURES)


def test_every_line_of_the_page_has_all_columns() -> None:
    lines = markdown(FIGURES).splitlines()
    assert {line.count("|") for line in lines} == {len(HEADINGS) + 1}


def test_published_figures_are_of_named_peers() -> None:
    assert {name for peers in PUBLISHED.values() for name in peers} == set(NAMES)


@pytest.mark.parametrize(
    ("value", "written"), [(0.041, "0.04"), (7.0, "7.00"), (35.57, "35.6"), (1006.2, "1,006")]
)
def test_numbers_keep_the_digits_that_count(value: float, written: str) -> None:
    assert number(value) == written
