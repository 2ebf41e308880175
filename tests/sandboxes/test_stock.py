"""Which sandbox a setting means, and that what it does not protect is said."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from hallporter.domain.brief import Fitness, Launch
from hallporter.domain.errors import AgentRefusedError
from hallporter.ports import Box
from hallporter.sandboxes.stock import Stock


class PaperBox:
    """A sandbox that is only probed."""

    def __init__(self, name: str, fitness: Fitness) -> None:
        self.name = name
        self._fitness = fitness

    async def probe(self) -> Fitness:
        return self._fitness

    async def launch(self, launch: Launch) -> Box:
        raise AgentRefusedError(f"{launch.name}: nothing runs on paper")

    async def sweep(self) -> int:
        return 0


def stock(*, bubblewrap: str = "", preferred: str = "auto") -> Stock:
    walls = PaperBox("bubblewrap", Fitness(problem=bubblewrap, unenforced=("no memory limit",)))
    plain = PaperBox("process", Fitness(warnings=("protects nothing",)))
    return Stock([walls, plain], preferred)


async def test_what_is_not_enforced_is_said_at_the_start() -> None:
    with capture_logs() as logs:
        await stock().probe()

    assert [log["what"] for log in logs if log["event"] == "sandbox.mind"] == ["no memory limit"]


@pytest.mark.parametrize(("preferred", "named"), [("process", ()), ("auto", ("process",))])
async def test_a_plain_process_that_is_named_anywhere_is_warned_about_at_the_start(
    preferred: str, named: tuple[str, ...]
) -> None:
    with capture_logs() as logs:
        await stock(preferred=preferred).probe(named)

    assert "protects nothing" in [log.get("what") for log in logs]


async def test_a_plain_process_that_a_group_names_later_is_warned_about_once() -> None:
    boxes = stock()
    await boxes.probe()
    with capture_logs() as logs:
        assert boxes.named("process").name == "process"
        boxes.named("process")

    assert len([log for log in logs if log["event"] == "sandbox.mind"]) == 1
    assert {info.name for info in boxes.report()} == {"bubblewrap", "process"}


async def test_a_plain_process_is_never_chosen_by_itself() -> None:
    boxes = stock(bubblewrap="user namespaces are forbidden")
    await boxes.probe(["process"])

    with pytest.raises(AgentRefusedError, match="user namespaces are forbidden"):
        boxes.named("auto")
    assert not any(info.is_chosen for info in boxes.report())
