"""How much is taken at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.portion import fitting


@given(st.lists(st.integers(0, 100), min_size=1), st.integers(0, 200))
def test_as_many_as_fit_and_always_one(sizes: list[int], most: int) -> None:
    count = fitting(sizes, most)

    assert count == 1 or sum(sizes[:count]) <= most
    assert count == len(sizes) or sum(sizes[: count + 1]) > most


def test_of_nothing_there_is_nothing() -> None:
    assert fitting([], 10) == 0
