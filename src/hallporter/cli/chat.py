"""`hallporter chat`: talk from the shell."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hallporter.cli.shell import shell_of


def talk(
    context: typer.Context,
    *,
    chat: Annotated[str, typer.Option(help="The chat to talk in.", metavar="ID")] = "web:main",
    once: Annotated[
        str | None, typer.Option(help="Say this, print the replies and exit.", metavar="TEXT")
    ] = None,
    sender: Annotated[
        str | None, typer.Option(help="Speak for this person.", metavar="NAME")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for an answer.", metavar="S")
    ] = 120,
) -> None:
    """Talk from the shell; Ctrl-D leaves. Lines that are piped in are messages too."""
    import asyncio

    from hallporter.cli import conversation
    from hallporter.cli.host import api
    from hallporter.cli.view import Plain, Terminal

    async def work() -> int:
        async with api(shell_of(context).home, must_run=True) as client:
            if once is not None:
                return await conversation.once(
                    client, chat=chat, text=once, sender=sender, patience=timeout
                )
            is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
            view = Terminal() if is_terminal else Plain()
            return await conversation.converse(
                client, chat=chat, sender=sender, patience=timeout, view=view
            )

    try:
        code = asyncio.run(work())
    except KeyboardInterrupt:
        code = 0 if once is None else 1  # leaving a conversation is its usual end
        sys.stdout.write("\n")
    raise typer.Exit(code)
