"""How far long work has come: a bar at a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from hallporter.cli import screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Report = Callable[[int, int], None]

_STEP = 25  # per cent between two lines


@contextlib.contextmanager
def progress(what: str, *, is_bytes: bool = True) -> Iterator[Report]:
    """A function to tell the bytes, or steps, done and in all; what it shows goes to stderr."""
    if sys.stderr.isatty():
        with _bar(what, is_bytes=is_bytes) as report:
            yield report
    else:
        yield _lines(what)


@contextlib.contextmanager
def _bar(what: str, *, is_bytes: bool) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    amount = DownloadColumn() if is_bytes else MofNCompleteColumn()
    columns = (TextColumn(what), BarColumn(), amount, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        yield report


def _lines(what: str) -> Report:
    told = -_STEP

    def report(done: int, total: int) -> None:
        nonlocal told
        percent = 100 * done // total if total else 100
        if percent >= told + _STEP:
            told = percent - percent % _STEP
            screen.note(f"{what}: {told} %")

    return report
