"""Which folders from elsewhere an agent may see."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.extra_mount import (
    BLOCKED,
    Allowance,
    Denied,
    ExtraMount,
    Granted,
    Root,
    decide,
    parse_mount,
)

HOME = Path("/var/lib/hallporter")
ASK = ExtraMount(path="/srv/notes", name="notes")
WRITING = ExtraMount(path="/srv/notes", name="notes", writable=True)
NOTES = Path("/srv/notes")

# Few names, so that paths lie in one another often.
NAMES = st.sampled_from(["srv", "var", "lib", "hallporter", "notes", ".ssh", "my.env", "a", "A"])
PATHS = st.lists(NAMES, max_size=4).map(lambda names: Path("/", *names))
ROOTS = st.lists(st.builds(Root, path=PATHS, writable=st.booleans()), max_size=3)
ALLOWANCES = st.builds(
    Allowance,
    roots=ROOTS.map(tuple),
    blocked=st.lists(st.sampled_from(["a", "taxes", "lib/h"]), max_size=2).map(tuple),
    non_main_read_only=st.booleans(),
)


def allow(*paths: str, writable: bool = False, **more: object) -> Allowance:
    roots = tuple(Root(path=Path(path), writable=writable) for path in paths)
    return Allowance(roots=roots, **more)  # type: ignore[arg-type]


def judged(
    source: str, allowance: Allowance, ask: ExtraMount = ASK, *, is_main: bool = False
) -> Granted | Denied:
    return decide(ask, Path(source), allowance, protected=[HOME], is_main=is_main)


@given(source=PATHS, allowance=ALLOWANCES, writable=st.booleans(), is_main=st.booleans())
@example(
    source=Path("/srv/notes"),
    allowance=allow("/srv", writable=True),
    writable=True,
    is_main=True,
)
def test_nothing_is_granted_that_any_rule_forbids(
    source: Path, allowance: Allowance, writable: bool, is_main: bool
) -> None:
    ask = ExtraMount(path=str(source), name="x", writable=writable)

    decision = decide(ask, source, allowance, protected=[HOME], is_main=is_main)

    above = [root for root in allowance.roots if source.is_relative_to(root.path)]
    is_forbidden = (
        not above
        or source.is_relative_to(HOME)
        or HOME.is_relative_to(source)
        or any(word.lower() in str(source).lower() for word in (*BLOCKED, *allowance.blocked))
    )
    assert isinstance(decision, Denied) == is_forbidden
    if isinstance(decision, Granted):
        assert (decision.source, decision.name) == (source, "x")
    if isinstance(decision, Granted) and decision.writable:
        assert writable
        assert any(root.writable for root in above)
        assert is_main or not allowance.non_main_read_only


@given(source=PATHS, allowance=ALLOWANCES, more=st.text(min_size=1, max_size=3))
def test_a_further_pattern_never_lets_more_in(
    source: Path, allowance: Allowance, more: str
) -> None:
    stricter = Allowance(
        roots=allowance.roots,
        blocked=(*allowance.blocked, more),
        non_main_read_only=allowance.non_main_read_only,
    )
    before = decide(WRITING, source, allowance, protected=[HOME], is_main=True)
    after = decide(WRITING, source, stricter, protected=[HOME], is_main=True)
    assert after == before or isinstance(after, Denied)


@pytest.mark.parametrize("pattern", BLOCKED)
def test_what_holds_keys_is_blocked_wherever_it_stands_in_a_path(pattern: str) -> None:
    for path in (f"/srv/{pattern}", f"/srv/my{pattern}s/x", f"/srv/{pattern.upper()}/x"):
        assert judged(path, allow("/")) == Denied(f"'{pattern}' in a path is blocked")


def test_the_list_has_the_seventeen_of_old() -> None:
    assert len(BLOCKED) == len(set(BLOCKED)) == 17


@pytest.mark.parametrize("path", ["/", "/var", "/var/lib/hallporter", "/var/lib/hallporter/groups"])
def test_the_home_and_what_it_lies_in_are_never_shown(path: str) -> None:
    assert judged(path, allow("/")) == Denied("Hallporter keeps its own things there")


def test_a_neighbour_with_a_similar_name_is_not_below_a_root() -> None:
    assert isinstance(judged("/srv/notes2", allow("/srv/notes")), Denied)
    assert isinstance(judged("/srv", allow("/srv/notes")), Denied)
    assert isinstance(judged("/srv/notes", allow()), Denied)


def test_it_is_read_only_unless_asked_for() -> None:
    granted = judged("/srv/notes", allow("/srv", writable=True), is_main=True)
    assert granted == Granted(source=NOTES, name="notes", writable=False)


@pytest.mark.parametrize(
    ("is_root_writable", "is_main", "non_main_read_only", "is_writable"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, False, True, False),
        (False, True, True, False),
        (False, False, False, False),
    ],
)
def test_writing_needs_the_root_s_leave_and_main_or_leave_for_all(
    is_root_writable: bool, is_main: bool, non_main_read_only: bool, is_writable: bool
) -> None:
    allowance = allow("/srv", writable=is_root_writable, non_main_read_only=non_main_read_only)

    granted = judged("/srv/notes", allowance, WRITING, is_main=is_main)

    assert isinstance(granted, Granted)
    assert granted.writable == is_writable
    assert bool(granted.note) != is_writable


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_closest_root_speaks_for_what_lies_below_it(is_reversed: bool) -> None:
    roots = [Root(path=Path("/srv"), writable=True), Root(path=NOTES, writable=False)]
    allowance = Allowance(roots=tuple(reversed(roots) if is_reversed else roots))

    granted = judged("/srv/notes/a", allowance, WRITING, is_main=True)

    assert isinstance(granted, Granted)
    assert not granted.writable


@given(st.text(max_size=80))
@example("/srv/..")
@example("/srv/a:..:rw")
def test_a_name_never_leaves_its_place(text: str) -> None:
    try:
        mount = parse_mount(text)
    except InvalidRequestError as error:
        assume(error.facts["field"] == "mounts")
        return
    target = PurePosixPath("/workspace/extra") / mount.name
    assert target.parent == PurePosixPath("/workspace/extra")
    assert mount.name not in (".", "..")
    assert parse_mount(str(mount)) == mount
