"""Which messages an agent's words answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.coverage import Coverage, Covered, Given, cover, exit_failed

STEPS = st.lists(st.tuples(st.sampled_from(["give", "take"]), st.integers(-5, 50)), max_size=30)


@pytest.mark.rule("R1")
@pytest.mark.rule("R3")
@given(start=st.integers(0, 10), steps=STEPS)
def test_what_is_covered_never_goes_back_and_never_beyond_what_was_given(
    start: int, steps: list[tuple[str, int]]
) -> None:
    coverage = Coverage(piped=start, through=start)
    for what, number in steps:
        before = coverage
        coverage = coverage.give(number) if what == "give" else coverage.take(number)

        assert before.through <= coverage.through <= coverage.piped
        assert before.piped <= coverage.piped
        assert coverage.has_success == (before.has_success or what == "take")
        assert coverage.is_complete == (coverage.through == coverage.piped)


@pytest.mark.rule("R5")
@pytest.mark.parametrize(
    ("has_success", "through", "taken", "failed"),
    [
        (False, 0, 0, True),
        (False, 0, 3, True),
        (True, 3, 3, False),
        (True, 3, 2, False),
        (True, 3, 5, True),
    ],
)
def test_an_exit_fails_without_success_or_with_something_taken_up_and_not_covered(
    has_success: bool, through: int, taken: int, failed: bool
) -> None:
    coverage = Coverage(piped=5, through=through, has_success=has_success)

    assert exit_failed(coverage, taken) is failed


@pytest.mark.rule("R3")
def test_the_first_block_covers_the_stdin_batch() -> None:
    given_ = Given(through=4, file=None)

    assert cover(given_, is_file_gone=False, before=0) == Covered(through=4, idle=True)


@pytest.mark.rule("R3")
def test_a_file_is_covered_by_the_first_block_after_it_is_gone() -> None:
    given_ = Given(through=6, file="0001.json")

    assert cover(given_, is_file_gone=False, before=4) == Covered(through=4, idle=False)
    assert cover(given_, is_file_gone=True, before=4) == Covered(through=6, idle=True)


@pytest.mark.rule("R3")
def test_a_block_with_nothing_outstanding_covers_no_more_and_is_idle() -> None:
    assert cover(None, is_file_gone=False, before=4) == Covered(through=4, idle=True)
