"""`hallporter logs`: what happened, from the files in the home, whether a host runs or not."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hallporter.cli import logbook, screen
from hallporter.cli.shell import AsJson, shell_of
from hallporter.domain.terminal import escaped_json

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_LOOK_AGAIN = 0.2  # seconds


def show_logs(
    context: typer.Context,
    *,
    is_followed: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")
    ] = False,
    chat: Annotated[str | None, typer.Option(help="Of this chat only.", metavar="ID")] = None,
    turn: Annotated[str | None, typer.Option(help="Of this turn only.", metavar="ID")] = None,
    level: Annotated[
        str, typer.Option(help=f"This and above: {', '.join(logbook.LEVELS)}.", metavar="LEVEL")
    ] = logbook.LEVELS[0],
    since: Annotated[
        str | None, typer.Option(help="Not older than 90s, 10m, 2h, 1d, or a time.", metavar="WHEN")
    ] = None,
    newest: Annotated[
        int, typer.Option("-n", "--lines", min=0, help="How many of the newest.", metavar="N")
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """Show the host's log. With --json an array, or one object a line when it is followed."""
    import time

    from hallporter.home import Home
    from hallporter.logs import log_files

    if level not in logbook.LEVELS:
        raise typer.BadParameter(f"--level {level!r} is none of {', '.join(logbook.LEVELS)}")
    wanted = logbook.Wanted(
        chat=chat, turn=turn, level=level, since=None if since is None else _moment(since)
    )
    path = Home(path=shell_of(context).home.expanduser().absolute()).log_file
    if is_followed:
        with contextlib.suppress(KeyboardInterrupt):  # the usual end
            for entry in logbook.follow(
                lambda: log_files(path), wanted, newest, lambda: time.sleep(_LOOK_AGAIN)
            ):
                _show(entry, as_json=as_json)
        return
    entries = logbook.read(log_files(path), wanted, newest)
    if as_json:
        screen.show_json(entries)
        return
    for entry in entries:
        _show(entry, as_json=False)
    if not entries:
        screen.note(_nothing(path))


def _show(entry: logbook.Entry, *, as_json: bool) -> None:
    told = json.dumps(entry, ensure_ascii=False)
    screen.show(escaped_json(told) if as_json else logbook.line_of(entry))
    sys.stdout.flush()


def _nothing(path: Path) -> str:
    return "nothing matches" if path.exists() else f"no host has written {path} yet"


def _moment(text: str) -> datetime:
    from datetime import UTC, datetime, timedelta

    from hallporter.clock import SystemClock
    from hallporter.settings.kinds import NotAllowedError, duration

    try:
        ago: timedelta = duration(timedelta(0)).read(text)
        return SystemClock().now() - ago
    except NotAllowedError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        what = f"{text!r} is neither a duration such as 10m nor a time such as 2026-11-15T08:30"
        raise typer.BadParameter(what) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
