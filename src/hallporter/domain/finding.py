"""What a look at the house found, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # it works; someone should know
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chmod:
    """Give a path this mode."""

    path: Path
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeFolder:
    """Make a folder that is lacking."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBoxes:
    """End and remove what an earlier host left of its sandboxes."""


Fix = Chmod | MakeFolder | SweepBoxes
"""What can be done without harm and without asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`do` is for people; `fix` is what `doctor --fix` does instead, `mended` that it did."""

    about: str
    level: Level
    what: str
    do: str = ""
    fix: Fix | None = None
    mended: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it is a reason to fail."""
        return self.level is Level.PROBLEM and not self.mended


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting as it acts now; a secret's value is not shown."""

    key: str
    value: str
    origin: str
    acts: str  # from when a change of it counts
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Everything a doctor has to say."""

    findings: tuple[Finding, ...]
    settings: tuple[Setting, ...] = ()


def good(about: str, what: str) -> Finding:
    """What was looked at and is as it should be."""
    return Finding(about=about, level=Level.OK, what=what)


def warn(about: str, what: str, do: str) -> Finding:
    return Finding(about=about, level=Level.WARNING, what=what, do=do)


def problem(about: str, what: str, do: str, fix: Fix | None = None) -> Finding:
    return Finding(about=about, level=Level.PROBLEM, what=what, do=do, fix=fix)
