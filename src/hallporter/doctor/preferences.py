"""The settings: what to mind in them, and which wait for a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.finding import Finding, good, problem, warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ABOUT = "settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The sources as they are now; `broken` says why they make no settings, a line each."""

    warnings: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # keys that a running host does not follow yet
    broken: tuple[str, ...] = ()


def judge_folders(named: Mapping[str, str], registered: Iterable[str]) -> list[Finding]:
    """`named` are the folders that have settings of their own, and where these stand."""
    there = {folder.casefold() for folder in registered}
    return [
        warn(
            ABOUT,
            f"groups.{folder}.agent from {origin} has no effect: no group has this folder",
            f"mend the name, or register it: hallporter groups add CHAT --folder {folder}",
        )
        for folder, origin in named.items()
        if folder.casefold() not in there
    ]


def judge(reading: Reading) -> list[Finding]:
    mend = "mend it there, or take it out; docs/settings.md has every key"
    found = [
        problem(ABOUT, one, f"{mend}; the host does not start like this") for one in reading.broken
    ]
    found += [warn(ABOUT, one, mend) for one in reading.warnings]
    found += [
        warn(ABOUT, f"{key} has changed since the host began", "restart the host")
        for key in reading.changed
    ]
    return found or [good(ABOUT, "all are understood and in force")]
