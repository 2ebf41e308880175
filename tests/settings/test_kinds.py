from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.settings import kinds
from hallporter.settings.kinds import Kind, NotAllowedError

DURATION = kinds.duration(timedelta(0))
SIZE = kinds.size(0)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text())
)
EVERY_KIND = [
    kinds.one_line(64),
    kinds.choice("a", "b"),
    kinds.yes_or_no(),
    kinds.whole(0, 10),
    DURATION,
    kinds.milliseconds(timedelta(0)),
    SIZE,
    kinds.or_none(kinds.processors()),
    kinds.argv(),
    kinds.image(),
    kinds.zone(),
    kinds.address(),
    kinds.database(),
]


@given(st.integers(0, 365), st.sampled_from("smhd"))
def test_a_duration_is_its_number_of_units(amount: int, unit: str) -> None:
    assert DURATION.read(f"{amount}{unit}") == timedelta(seconds=amount * SECONDS[unit])


@given(st.integers(0, 31_536_000))
def test_a_duration_without_a_unit_is_seconds(seconds: int) -> None:
    expected = timedelta(seconds=seconds)
    assert DURATION.read(seconds) == DURATION.read(str(seconds)) == expected
    assert DURATION.read(float(seconds)) == expected
    assert kinds.milliseconds(timedelta(0)).read(str(seconds * 1000)) == expected


@given(st.timedeltas(timedelta(0), timedelta(days=365)))
def test_a_duration_in_fractions_of_a_second_comes_back(length: timedelta) -> None:
    read = DURATION.read(length.total_seconds())
    assert abs(read - length) <= timedelta(microseconds=1)


@given(st.integers(0, 1 << 30), st.sampled_from(["", "k", "m", "g"]))
def test_a_size_is_its_number_of_units_in_either_case(amount: int, unit: str) -> None:
    expected = amount * BYTES[unit]
    assert SIZE.read(f"{amount}{unit}") == SIZE.read(f"{amount}{unit.upper()}") == expected
    assert SIZE.read(expected) == expected


@pytest.mark.parametrize("kind", EVERY_KIND, ids=lambda kind: kind.allowed)
@given(value=ANYTHING)
def test_any_value_is_read_or_refused_and_nothing_else(kind: Kind, value: object) -> None:
    with suppress(NotAllowedError):
        kind.read(value)


@pytest.mark.parametrize("value", ["none", 0, "0"])
def test_a_limit_can_be_lifted(value: object) -> None:
    assert kinds.or_none(kinds.whole(1, 9)).read(value) is None


@pytest.mark.parametrize(("value", "cpus"), [("1.5", 1.5), (2, 2.0), (0.25, 0.25)])
def test_processors_may_be_shared(value: object, cpus: float) -> None:
    assert kinds.processors().read(value) == cpus


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["a", "b c"], ("a", "b c")),
        ('["a", "b c"]', ("a", "b c")),
        ("a 'b c'", ("a", "b c")),
        ([], ()),
    ],
)
def test_a_command_is_words_or_a_line_of_them(value: object, words: tuple[str, ...]) -> None:
    assert kinds.argv().read(value) == words


def test_a_command_nested_without_end_is_refused() -> None:
    with pytest.raises(NotAllowedError):
        kinds.argv().read("[" * 100_000)


@pytest.mark.parametrize("name", ["127.0.0.1", "0.0.0.0", "::1", "localhost", "my-host.example"])
def test_an_address_is_a_number_or_a_name(name: str) -> None:
    assert kinds.address().read(name) == name


def test_a_time_zone_may_have_posixs_colon() -> None:
    assert kinds.zone().read(":Europe/Paris") == "Europe/Paris"


@pytest.mark.parametrize(("word", "claim"), [(True, True), ("true", True), ("False", False)])
def test_a_claim_is_true_or_false(word: object, claim: bool) -> None:
    assert kinds.yes_or_no().read(word) is claim
