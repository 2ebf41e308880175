from __future__ import annotations

import json

import pytest

from hallporter.sandboxes import trial

SOUND = {"uid": 1000, "networks": ["lo"], "writes_root": False, "forks": 15}


def found(**differing: object) -> trial.Finding:
    return trial.read(json.dumps({**SOUND, **differing}).encode())


def test_a_sound_box_has_no_problem() -> None:
    assert found().problem == ""
    assert found().is_counted


@pytest.mark.parametrize(
    ("differing", "problem"),
    [
        ({"uid": 0}, "as root"),
        ({"networks": ["lo", "eth0"]}, "eth0"),
        ({"writes_root": True}, "write to the system"),
    ],
)
def test_a_wall_that_does_not_stand_is_the_problem(
    differing: dict[str, object], problem: str
) -> None:
    assert problem in found(**differing).problem


def test_forks_without_end_show_that_nobody_counts() -> None:
    assert not found(forks=64).is_counted


def test_a_failure_is_explained_in_its_own_words() -> None:
    assert trial.explain(1, b"first\nbwrap: something odd\n") == (
        "a trial run ended with 1: bwrap: something odd"
    )
    assert trial.explain(137, b"") == "a trial run ended with 137: it said nothing"
