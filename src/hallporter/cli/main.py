"""The command line: one command per verb, each of them a call of the HTTP API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup

from hallporter import __version__
from hallporter.cli import (
    archive,
    chat,
    doctor,
    explain,
    groups,
    imports,
    link,
    logs,
    screen,
    status,
    tasks,
    tokens,
)
from hallporter.cli.shell import Shell, shell_of

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="hallporter",
    help="A switchboard between chat networks and AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its help says `<bool>` behind every switch
)


def _show_version(is_asked: bool) -> None:  # noqa: FBT001  how Typer calls back
    if is_asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def choose(
    context: typer.Context,
    *,
    home: Annotated[
        str | None,
        typer.Option(
            help="The home folder; else HALLPORTER_HOME, else ~/.hallporter.",
            show_default=False,
            metavar="DIR",
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A switchboard between chat networks and AI agents."""
    if home == "":
        raise typer.BadParameter("--home is empty: name a folder")
    context.obj = Shell(None if home is None else Path(home))


@app.command()
def up(
    context: typer.Context,
    *,
    host: Annotated[
        str | None,
        typer.Option(
            help="Where to listen; 127.0.0.1 unless the settings say otherwise.", metavar="ADDRESS"
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="3100 unless the settings say otherwise; 0 for any free one.",
        ),
    ] = None,
) -> None:
    """Run the host in the foreground. SIGTERM or Ctrl-C ends it in good order."""
    import asyncio

    from hallporter.service import serve

    raise typer.Exit(asyncio.run(serve(shell_of(context).home, host, port)))


app.command("backup")(archive.backup)
app.command("chat")(chat.talk)
app.command("doctor")(doctor.examine)
app.command("explain")(explain.tell)
app.command("forget")(archive.forget)
app.command("link")(link.show_link)
app.command("logs")(logs.show_logs)
app.command("restore")(archive.restore)
app.command("status")(status.show_status)
app.add_typer(groups.app, name="groups")
app.add_typer(imports.app, name="import")
app.add_typer(tasks.app, name="tasks")
app.add_typer(tokens.app, name="tokens")


def run() -> None:
    """The program: a refusal is one sentence on stderr and exit 1, never a traceback."""
    from hallporter.domain.errors import HallporterError

    if any(map(_is_broken, sys.argv[1:])):
        _refuse("the arguments are not UTF-8: check the terminal's encoding", code=2)
    try:
        if not _show_help(sys.argv[1:]):
            app()
    except* HallporterError as errors:
        _refuse(_first(errors))
    except* OSError as errors:
        _refuse(_first(errors))


def _show_help(words: Sequence[str]) -> bool:
    """The help of a command, without reading the options above it: for those Typer would import
    pydantic first."""
    if not words or words[-1] != "--help":
        return False
    command: object = typer.main.get_command(app)
    for name in words[:-1]:
        command = command.commands.get(name) if isinstance(command, TyperGroup) else None
    if not isinstance(command, TyperGroup | TyperCommand):
        return False
    command.main(["--help"], prog_name=" ".join(["hallporter", *words[:-1]]))
    return True


def _first(errors: BaseExceptionGroup[Exception]) -> str:
    """The sentence of the first of them; a host's rooms fail together."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


def _is_broken(word: str) -> bool:
    """Bytes that are not text reach us as lone surrogates."""
    return any("\ud800" <= char <= "\udfff" for char in word)


def _refuse(sentence: str, code: int = 1) -> None:
    screen.note(f"hallporter: {sentence}")
    sys.exit(code)
