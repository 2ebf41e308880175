"""What an import has carried over, what was there already, and what it has left, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_EXAMPLES = 5  # names told with one remark
MAX_REMARKS = 500  # different ones
_LONGEST_NAME = 200  # characters


class Noun(StrEnum):
    """What is counted, in the order in which it is told."""

    CHATS = "chats"
    GROUPS = "groups"
    ALLOW_LISTS = "allow_lists"
    FILES = "files"
    SESSIONS = "sessions"
    MESSAGES = "messages"
    TASKS = "tasks"
    TICKS = "ticks"


class Outcome(StrEnum):
    """What became of one thing."""

    CARRIED = "carried"
    THERE = "there"  # already; it was not touched
    SKIPPED = "skipped"


class Sort(StrEnum):
    """Why something is remarked on."""

    SKIPPED = "skipped"
    MENDED = "mended"  # carried over, but not as it was
    NOTE = "note"  # to be known, or to be done by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One thing of another system's, and what became of it."""

    noun: Noun
    name: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """The same said of `count` things; `examples` names some of them."""

    about: str
    sort: Sort
    what: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`counts` has every noun, and for each every outcome."""

    source: str
    is_dry_run: bool
    counts: Mapping[Noun, Mapping[Outcome, int]]
    remarks: tuple[Remark, ...]


class Ledger:
    """Where an import writes down what it does, however much that is."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Noun, Outcome]] = Counter()
        self._told: Counter[tuple[str, Sort, str]] = Counter()
        self._examples: dict[tuple[str, Sort, str], list[str]] = {}
        self._untold = 0

    def add(self, piece: Piece) -> None:
        self._counts[piece.noun, piece.outcome] += 1
        if piece.why:
            is_skipped = piece.outcome is Outcome.SKIPPED
            sort = Sort.SKIPPED if is_skipped else Sort.NOTE
            self.tell(str(piece.noun), sort, piece.why, piece.name)

    def carried(self, noun: Noun, count: int = 1) -> None:
        self._counts[noun, Outcome.CARRIED] += count

    def there(self, noun: Noun, count: int = 1) -> None:
        self._counts[noun, Outcome.THERE] += count

    def skipped(self, noun: Noun, name: str, why: str) -> None:
        self.add(Piece(noun=noun, name=name, outcome=Outcome.SKIPPED, why=why))

    def mended(self, noun: Noun, name: str, what: str) -> None:
        self.tell(str(noun), Sort.MENDED, what, name)

    def note(self, about: str, what: str, name: str = "") -> None:
        self.tell(about, Sort.NOTE, what, name)

    def tell(self, about: str, sort: Sort, what: str, name: str) -> None:
        key = (about, sort, what)
        if key not in self._told and len(self._told) >= MAX_REMARKS:
            self._untold += 1
            return
        self._told[key] += 1
        examples = self._examples.setdefault(key, [])
        if name and len(examples) < MAX_EXAMPLES and name not in examples:
            examples.append(name[:_LONGEST_NAME])

    def report(self, source: str, *, is_dry_run: bool) -> Report:
        remarks = [
            Remark(about=about, sort=sort, what=what, count=count, examples=tuple(examples))
            for (about, sort, what), count in self._told.items()
            for examples in (self._examples[about, sort, what],)
        ]
        if self._untold:
            what = "there is more to remark on than is told here: mend this, and import again"
            remarks.append(
                Remark(about="import", sort=Sort.NOTE, what=what, count=self._untold, examples=())
            )
        counts = {n: {o: self._counts[n, o] for o in Outcome} for n in Noun}
        return Report(source=source, is_dry_run=is_dry_run, counts=counts, remarks=tuple(remarks))
