"""The figures as people read them: in a terminal, and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.peers import NAMES, published

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.figures import Figure

HEADINGS = ("", "median", "p95", "n", "goal", "", *NAMES)
_MISSED = "MISSED"


def rows(figures: Sequence[Figure], *, has_notes: bool) -> list[tuple[str, ...]]:
    """One row a figure, in the order of the headings."""
    return [
        (
            figure.what,
            f"{number(figure.value)} {figure.unit}",
            "" if figure.p95 is None else number(figure.p95),
            str(figure.n),
            "" if figure.at_most is None else f"≤ {number(figure.at_most)}",
            _verdict(figure),
            *(_peer(figure, name, has_notes=has_notes) for name in NAMES),
        )
        for figure in figures
    ]


def text(figures: Sequence[Figure]) -> str:
    """Aligned columns for a terminal; a peer's note stands there only in place of a value."""
    lines = [HEADINGS, *rows(figures, has_notes=False)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join(padded)


def markdown(figures: Sequence[Figure]) -> str:
    """A table of a page, with all that is to be said."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *rows(figures, has_notes=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    """Three digits that count; more would be noise."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _verdict(figure: Figure) -> str:
    if figure.at_most is None:
        return ""
    return _MISSED if figure.is_missed else "met"


def _peer(figure: Figure, name: str, *, has_notes: bool) -> str:
    known = published(figure.key, name)
    if known is None:
        return ""
    if known.value is None:
        return known.note
    value = f"{number(known.value)} {figure.unit}"
    return f"{value} ({known.note})" if known.note and has_notes else value
