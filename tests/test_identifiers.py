from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from hallporter.identifiers import IdMaker
from tests.fakes.clock import START, FakeClock


def test_an_id_is_its_prefix_and_26_digits_in_small_letters() -> None:
    assert re.fullmatch(r"m_[0-9a-hjkmnp-tv-z]{26}", IdMaker(FakeClock())("m"))


def test_an_id_begins_with_the_milliseconds_since_1970() -> None:
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    number = 0
    for digit in IdMaker(FakeClock())("t").removeprefix("t_"):
        number = number * 32 + digits.index(digit)
    assert number >> 80 == int(START.timestamp() * 1000)


@given(st.lists(st.integers(-5000, 5000), min_size=2, max_size=50))
def test_ids_rise_whatever_the_clock_does(steps: list[int]) -> None:
    clock = FakeClock()
    make = IdMaker(clock)
    made = []
    for step in steps:
        clock.advance(timedelta(milliseconds=step))
        made.append(make("m"))
    assert made == sorted(set(made))


@given(st.integers(0, 10**12), st.integers(1, 10**12))
def test_a_later_process_makes_higher_ids(first: int, later: int) -> None:
    earlier = START + timedelta(milliseconds=first)
    after = earlier + timedelta(milliseconds=later)
    assert IdMaker(FakeClock(after))("m") > IdMaker(FakeClock(earlier))("m")


def test_two_makers_at_the_same_instant_do_not_make_the_same_id() -> None:
    assert IdMaker(FakeClock())("m") != IdMaker(FakeClock())("m")


def test_threads_never_get_the_same_id() -> None:
    make = IdMaker(FakeClock())
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(make, ["m"] * 2000))
    assert len(set(made)) == 2000
