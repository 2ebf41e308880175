"""What follows a failure: the next rung, a pause until someone speaks again, or giving up (R14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

RUNGS = tuple(timedelta(seconds=s) for s in (5, 10, 20, 40, 80))
MAX_INTERRUPTIONS = 10  # in a row: more looks like a turn that takes the host down with it


@dataclass(frozen=True, slots=True)
class Retry:
    """Again after a while; `attempts` failures so far."""

    attempts: int
    after: timedelta


@dataclass(frozen=True, slots=True)
class Park:
    """Wait for the chat's next message, which retries all of it."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The cursor passes."""


Verdict = Retry | Park | GiveUp


def after_failure(*, attempts: int, is_parked: bool, is_refusal: bool) -> Verdict:
    """`attempts` counts the failures before this one; a refusal skips the ladder."""
    if not is_refusal and attempts < len(RUNGS):
        return Retry(attempts + 1, RUNGS[attempts])
    return GiveUp() if is_parked else Park()


def after_interruption(*, interruptions: int) -> Retry | Park:
    """A turn cut short by the host's own end is no attempt, but ten in a row are a pattern."""
    if interruptions + 1 >= MAX_INTERRUPTIONS:
        return Park()
    return Retry(0, timedelta(0))
