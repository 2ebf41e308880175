"""Of many ticks that were skipped in a row, two rows tell of all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hallporter.domain.crowd import CROWDED, folded
from hallporter.domain.ids import ChatId, TaskId
from hallporter.domain.task import Tick, TickState

NOON = datetime(2026, 2, 19, 12, tzinfo=UTC)


def crowded(second: int, why: str = CROWDED) -> Tick:
    due = NOON + timedelta(seconds=second)
    state = TickState.SKIPPED
    return Tick(task=TaskId("t"), due=due, chat=ChatId("fake:a"), state=state, why=why)


def test_the_first_two_of_a_crowd_have_rows_of_their_own() -> None:
    waiting = replace(crowded(0, ""), state=TickState.DUE)

    assert folded(crowded(1), [waiting]) is None
    assert folded(crowded(2), [crowded(1), waiting]) is None


def test_every_other_one_takes_the_place_of_the_last_and_counts_it() -> None:
    first, last = crowded(1), crowded(2)
    for second in range(3, 1503):
        one = folded(crowded(second), [last, first])
        assert one is not None
        last = one

    assert last.due == NOON + timedelta(seconds=1502)
    assert last.why.endswith("; so it was for 1,500 more since that of 2026-02-19 12:00:01 UTC")


def test_what_was_skipped_for_another_reason_or_comes_late_is_no_part_of_it() -> None:
    crowd = [crowded(2), crowded(1)]

    assert folded(crowded(3, "missed: nobody was there to start it"), crowd) is None
    assert folded(crowded(3), [crowded(2, "paused"), crowded(1)]) is None
    assert folded(crowded(2), crowd) is None


def test_what_comes_once_a_minute_or_less_has_its_rows() -> None:
    crowd = [crowded(60), crowded(0)]

    assert folded(crowded(119), crowd) is not None
    assert folded(crowded(120), crowd) is None
