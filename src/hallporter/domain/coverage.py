"""What a block covers: which messages an agent's words answer (R1 to R5)."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How far a turn has come: `piped` was given to the agent, `through` it has answered for."""

    piped: int
    through: int
    has_success: bool = False

    def give(self, through: int) -> Coverage:
        """One more batch is out."""
        return replace(self, piped=max(self.piped, through))

    def take(self, claimed: int) -> Coverage:
        """A success block says how far it reaches; it can neither go back nor beyond `piped`."""
        reached = min(max(claimed, self.through), self.piped)
        return replace(self, through=reached, has_success=True)

    @property
    def is_complete(self) -> bool:
        """Whether all that was given is answered for."""
        return self.through == self.piped


def exit_failed(coverage: Coverage, taken: int) -> bool:
    """Whether an exit leaves the turn failed: nothing answered, or something taken up and not
    covered. `taken` is the highest number the agent has taken up; files it left lying are not."""
    return not coverage.has_success or taken > coverage.through


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A batch given to a program whose blocks carry no `through` (R3); `file` is None for stdin."""

    through: int
    file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A block's reach, worked out for a program that does not say it."""

    through: int
    idle: bool


def cover(outstanding: Given | None, *, is_file_gone: bool, before: int) -> Covered:
    """The first success block covers the stdin batch; a file, the first read after it is gone."""
    if outstanding is None:
        return Covered(through=before, idle=True)
    if outstanding.file is None or is_file_gone:
        return Covered(through=outstanding.through, idle=True)
    return Covered(through=before, idle=False)
