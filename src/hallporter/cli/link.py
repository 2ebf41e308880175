"""`hallporter link`: a way in for one browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hallporter.cli import screen
from hallporter.cli.shell import AsJson, shell_of

if TYPE_CHECKING:
    from hallporter.cli.shell import Shell


def show_link(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Print a one-time link to the page. It works once, within five minutes."""
    import asyncio

    made = asyncio.run(_make(shell_of(context)))
    if as_json:
        screen.show_json(made)
        return
    screen.note("This link works once, within five minutes:")
    screen.show(made["url"])


async def _make(shell: Shell) -> dict[str, Any]:
    from hallporter.cli.host import api

    async with api(shell.home, must_run=True) as client:
        link = (await client.post("/api/links", {}))["data"]
        url = str(client.http.base_url).rstrip("/") + link["path"]
        return {"url": url, "expires": link["expires"]}
