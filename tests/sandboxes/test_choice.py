from __future__ import annotations

import pytest

from hallporter.domain.brief import Fitness
from hallporter.domain.errors import AgentRefusedError
from hallporter.sandboxes.choice import choose

WORKS = Fitness()
BROKEN = Fitness(problem="the daemon does not answer")


def test_auto_takes_the_strongest_that_works() -> None:
    choice = choose("auto", {"bubblewrap": WORKS, "docker": WORKS, "process": WORKS})

    assert choice.name == "docker"


def test_auto_says_what_it_passed_over_and_why() -> None:
    choice = choose("auto", {"docker": BROKEN, "bubblewrap": WORKS})

    assert choice.name == "bubblewrap"
    assert choice.why == (
        "the strongest that works here; docker does not: the daemon does not answer"
    )


def test_auto_never_takes_the_plain_process() -> None:
    with pytest.raises(AgentRefusedError, match=r'sandbox = "process"') as refused:
        choose("auto", {"bubblewrap": BROKEN, "process": WORKS})

    assert "Bubblewrap does not: the daemon does not answer." in refused.value.message


def test_a_named_sandbox_is_taken_at_its_word() -> None:
    choice = choose("process", {"bubblewrap": WORKS, "process": WORKS})

    assert (choice.name, choice.why) == ("process", "named in the settings")


def test_an_unknown_sandbox_is_refused_with_those_there_are() -> None:
    with pytest.raises(AgentRefusedError, match="use auto or one of bubblewrap, process"):
        choose("jail", {"bubblewrap": WORKS, "process": WORKS})


def test_a_named_sandbox_that_does_not_work_is_refused_with_the_reason() -> None:
    with pytest.raises(AgentRefusedError, match="the daemon does not answer"):
        choose("docker", {"docker": BROKEN, "bubblewrap": WORKS})
