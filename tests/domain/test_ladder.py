"""What follows a failure."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.ladder import (
    MAX_INTERRUPTIONS,
    RUNGS,
    GiveUp,
    Park,
    Retry,
    after_failure,
    after_interruption,
)


@pytest.mark.rule("R14")
@pytest.mark.requirement("queue.retry.exponential-backoff")
@pytest.mark.requirement("queue.retry.up-to-five")
def test_five_retries_each_after_twice_the_pause() -> None:
    pauses = []
    attempts = 0
    while isinstance(
        verdict := after_failure(attempts=attempts, is_parked=False, is_refusal=False), Retry
    ):
        pauses.append(verdict.after)
        attempts = verdict.attempts

    assert pauses == [timedelta(seconds=s) for s in (5, 10, 20, 40, 80)]
    assert verdict == Park()


@pytest.mark.rule("R14")
@given(attempts=st.integers(0, 20), is_parked=st.booleans(), is_refusal=st.booleans())
def test_a_chat_is_given_up_only_after_it_was_parked_once(
    attempts: int, is_parked: bool, is_refusal: bool
) -> None:
    verdict = after_failure(attempts=attempts, is_parked=is_parked, is_refusal=is_refusal)

    if isinstance(verdict, GiveUp):
        assert is_parked
    assert isinstance(verdict, Retry) == (not is_refusal and attempts < len(RUNGS))


@pytest.mark.rule("R14")
def test_interruptions_run_again_at_once_until_the_tenth_in_a_row() -> None:
    verdicts = [after_interruption(interruptions=n) for n in range(MAX_INTERRUPTIONS)]

    assert verdicts[:-1] == [Retry(0, timedelta(0))] * (MAX_INTERRUPTIONS - 1)
    assert verdicts[-1] == Park()
