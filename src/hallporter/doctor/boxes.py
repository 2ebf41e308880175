"""The sandboxes: which work, what they cannot keep, and what an earlier host left of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.errors import HallporterError
from hallporter.domain.finding import Finding, Level, SweepBoxes, good, problem, warn
from hallporter.sandboxes import cgroups, leftovers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from hallporter.home import Home
    from hallporter.switchboard.status import SandboxInfo

ABOUT = "sandbox"


def judge_sandboxes(boxes: Sequence[SandboxInfo]) -> list[Finding]:
    """What a probe run in each has shown."""
    found = []
    for box in boxes:
        if box.is_chosen:
            found.append(good(ABOUT, f"{box.name} works: {box.why}"))
        found += [
            warn(ABOUT, f"{box.name}: {what}", _advice(do))
            for what, _, do in (one.partition("; ") for one in box.fitness.unenforced)
        ]
        found += [
            warn(ABOUT, f"{box.name}: {one}", "use another sandbox where you can")
            for one in box.fitness.warnings
        ]
    if not any(box.is_chosen for box in boxes):
        why = boxes[0].why if boxes else "none was tried"
        do = "mend what it says, or name another sandbox in [agent]"
        found.append(problem(ABOUT, f"no sandbox can be used: {why}", do))
    return found


# --- a dry start of every agent -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DryStart:
    """What came of it; `trouble` is empty when the agent could be started as it is set."""

    folder: str
    kind: str = ""
    sandbox: str = ""
    trouble: str = ""
    missing: tuple[str, ...] = ()  # paths in its command that are not there inside
    notes: tuple[str, ...] = ()  # what it has less of than was asked for
    where_to_change: str = ""  # the setting that decides; completes "change it …"
    is_network_moot: bool = False


def refused(folder: str, error: HallporterError, where_to_change: str) -> DryStart:
    return DryStart(folder=folder, trouble=error.message, where_to_change=where_to_change)


def judge_agents(starts: Iterable[DryStart]) -> list[Finding]:
    return [finding for start in starts for finding in _judge_start(start)]


def _judge_start(start: DryStart) -> list[Finding]:
    whose = f"the agent of '{start.folder}'"
    if start.trouble:
        do = f"mend what it says, or change it {start.where_to_change}"
        return [problem("agents", f"{whose} cannot start: {start.trouble}", do)]
    found = [
        warn(
            "agents",
            f"{whose} names {path}, which is not there",
            f"make it, or change its command {start.where_to_change}",
        )
        for path in start.missing
    ]
    found += [
        warn("agents", f"of {whose}: {note}", "allow it in policy/mounts.json, or ask for less")
        for note in start.notes
    ]
    if start.is_network_moot:
        what = f"{whose} is a plain process: its setting 'network' has no effect"
        found.append(warn("agents", what, "take the setting out, or use another sandbox"))
    return found or [good("agents", f"{whose} ({start.kind}) can start in {start.sandbox}")]


# --- what was left ------------------------------------------------------------------------------


def left_by_others(home: Home, installation: str, live: Collection[str]) -> frozenset[str]:
    """Names of boxes of this home, or of something of them, that are nobody's now."""
    fences = cgroups.Fences(cgroups.find(), installation=installation)
    views = home.run_dir / "boxes"
    names = {*leftovers.seen(installation), *fences.names()}
    if views.is_dir():
        names |= {folder.name for folder in views.iterdir()}
    return frozenset(names.difference(live))


def judge_left(names: Collection[str], *, is_serving: bool) -> list[Finding]:
    if not names:
        return [good("boxes", "no box was left behind")]
    told = ", ".join(sorted(names)[:5])
    count = "1 box was" if len(names) == 1 else f"{len(names)} boxes were"
    what = f"{count} left behind: {told}"
    if is_serving:
        return [warn("boxes", what, "restart the host: it ends them before its first turn")]
    return [
        Finding(
            about="boxes",
            level=Level.WARNING,
            what=what,
            do="start the host: it ends them before its first turn",
            fix=SweepBoxes(),
        )
    ]


def _advice(do: str) -> str:
    return do or "accept it, or run on a kernel that can"
