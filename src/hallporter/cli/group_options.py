"""What can be said of a group on the command line, and what it becomes in a request."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

Folder = Annotated[str, typer.Argument(help="The group's folder.", show_default=False)]
Trigger = Annotated[
    str | None,
    typer.Option(help="'@Word' at the start, or a regular expression.", show_default=False),
]
Agent = Annotated[str | None, typer.Option(help="The kind of agent.", metavar="KIND")]
Command = Annotated[
    str | None, typer.Option(help="The program of the kind 'command', with its arguments.")
]
Sandbox = Annotated[str | None, typer.Option(help="The kind of sandbox.")]
Mounts = Annotated[
    list[str] | None,
    typer.Option(
        "--mount",
        help="What its agent sees as /workspace/extra/NAME, if policy/mounts.json allows it. Can be"
        " said again; replaces what was there.",
        metavar="PATH[:NAME][:rw]",
        show_default=False,
    ),
]
NoMounts = Annotated[
    bool, typer.Option("--no-mounts", help="Only the house's own, by default none.")
]
AssistantName = Annotated[
    str | None,
    typer.Option(help="What the assistant is called here; '' is as elsewhere.", show_default=False),
]
AllowSender = Annotated[
    list[str] | None,
    typer.Option(
        help="Who may talk, by the id that /whoami tells. Can be said again; replaces the list.",
        metavar="ID",
        show_default=False,
    ),
]
AllowEveryone = Annotated[bool, typer.Option("--allow-everyone", help="Everyone may talk.")]
AllowNobody = Annotated[bool, typer.Option("--allow-nobody", help="Nobody may talk.")]
OtherSenders = Annotated[
    str | None,
    typer.Option(
        help="What the others say: 'ignore' does not keep it, 'store' keeps it to go along with"
        " what the allowed ones say.",
        metavar="ignore|store",
        show_default=False,
    ),
]
Main = Annotated[bool, typer.Option("--main", help="Make it the main group.")]
Yes = Annotated[bool, typer.Option("--yes", help="Answer questions with yes.")]


def given(**values: object) -> dict[str, object]:
    """Only what was said."""
    return {key: value for key, value in values.items() if value is not None}


def senders(
    allowed: list[str] | None, others: str | None, *, everyone: bool = False, nobody: bool = False
) -> dict[str, object]:
    """The request's `senders`, if anything was said of them; null means everyone."""
    if bool(allowed) + everyone + nobody > 1:
        message = "say one of --allow-sender, --allow-everyone and --allow-nobody"
        raise typer.BadParameter(message)
    if everyone:
        if others is not None:
            raise typer.BadParameter("--others: with --allow-everyone there are none")
        return {"senders": None}
    names = [] if nobody else allowed or None
    rule = given(allow=names, others=others)
    return {"senders": rule} if rule else {}


def agent_settings(
    command: str | None,
    sandbox: str | None,
    mounts: list[str] | None,
    *,
    no_mounts: bool = False,
) -> dict[str, object]:
    """The request's `agent_settings`, if anything was said of them; null takes a key back."""
    try:
        argv = None if command is None else shlex.split(command)
    except ValueError as error:
        raise typer.BadParameter(f"--command: {error}") from error
    if mounts and no_mounts:
        raise typer.BadParameter("say either --mount or --no-mounts")
    settings = given(command=argv, sandbox=sandbox, mounts=mounts or None)
    if no_mounts:
        settings["mounts"] = None
    return {"agent_settings": settings} if settings else {}
