"""What a person sees: tables at a terminal, plain columns and JSON elsewhere."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from hallporter.domain.terminal import escaped_json, harmless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GAP = "  "
_UNIT = 1024


def show_json(document: object) -> None:
    """One document on stdout."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    sys.stdout.write(escaped_json(text) + "\n")


def show(text: str) -> None:
    """A line on stdout."""
    sys.stdout.write(f"{harmless(text)}\n")


def note(text: str) -> None:
    """A line beside the result."""
    sys.stderr.write(f"{harmless(text)}\n")


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Framed and coloured at a terminal, else columns that tools can cut; a row is one line."""
    cells = [["" if value is None else clean(str(value)) for value in row] for row in rows]
    if sys.stdout.isatty():
        _show_framed(columns, cells)
        return
    for line in plain_table(columns, cells):
        show(line)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns."""
    lines = [[column.upper() for column in columns], *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _show_framed(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, header_style="bold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def clean(text: str) -> str:
    """People's words on one line, with a mark in place of what would steer the terminal."""
    return harmless(" ".join(text.split()))


def yes_or_no(value: object) -> str:
    return "yes" if value else "no"


def moment(text: str | None) -> str:
    """An ISO time as people read it, to the second."""
    if not text:
        return ""
    day, _, rest = text.partition("T")
    return f"{day} {rest[:8]} UTC"


def size(count: int) -> str:
    """Bytes as people read them; units are powers of 1024."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < _UNIT:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= _UNIT
    return f"{amount:.1f} TiB"


def files(message: Mapping[str, Any]) -> list[str]:
    """What goes along with a message, a line each."""
    return [
        f"[file {clean(file['name'])}, {size(file['size'])}: {file['url']}]"
        for file in message.get("files", ())
    ]


def span(seconds: float) -> str:
    """A stretch of time as people say it, in its two largest units."""
    if seconds < 10:  # noqa: PLR2004  from there on tenths tell nothing
        return f"{seconds:.1f} s"
    left = int(seconds)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        amount, left = divmod(left, length)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2])
