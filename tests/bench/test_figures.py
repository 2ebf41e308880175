from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import Figure, percentile, sampled

SAMPLES = st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=1, max_size=50)


def test_the_95th_percentile_of_a_hundred_values_is_the_95th() -> None:
    assert percentile([float(value) for value in range(1, 101)], 0.95) == 95


def test_a_single_value_is_each_of_its_percentiles() -> None:
    assert [percentile([7.0], share) for share in (0.0, 0.5, 0.95, 1.0)] == [7.0] * 4


@given(SAMPLES, st.floats(min_value=0, max_value=1))
def test_a_percentile_is_one_of_the_values_and_not_exceeded_by_its_share(
    values: list[float], share: float
) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9


def test_a_sampled_figure_tells_median_percentile_and_count() -> None:
    figure = sampled("key", "what", "ms", [3.0, 1.0, 2.0, 10.0])
    assert (figure.value, figure.p95, figure.n) == (2.5, 10.0, 4)


@pytest.mark.parametrize(
    ("value", "at_most", "is_missed"),
    [(9.0, 10.0, False), (10.0, 10.0, False), (11.0, 10.0, True), (11.0, None, False)],
)
def test_a_goal_is_missed_only_above_it(
    value: float, at_most: float | None, is_missed: bool
) -> None:
    figure = Figure(key="key", what="what", unit="ms", value=value, at_most=at_most)
    assert figure.is_missed is is_missed
