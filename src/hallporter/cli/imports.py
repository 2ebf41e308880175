"""`hallporter import`: moving in from another system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter.cli import screen
from hallporter.cli.progress import progress
from hallporter.cli.shell import AsJson, ask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hallporter.cli.host import Client

app = typer.Typer(help="Move in from another system.", no_args_is_help=True)

_SORTS = {"skipped": "left out", "mended": "mended", "note": "note"}


@app.command("nanoclaw")
def import_nanoclaw(
    context: typer.Context,
    *,
    path: Annotated[
        Path, typer.Argument(help="The folder of NanoClaw v1.", metavar="PATH", show_default=False)
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            help="The folder of its allow-lists; else ~/.config/nanoclaw.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be done, and write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Carry over groups, tasks, sessions, files and the whole history; the source is only read."""
    body: dict[str, object] = {"path": str(path.absolute()), "is_dry_run": dry_run}
    if config is not None:
        body["config"] = str(config.absolute())

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        with progress("import", is_bytes=False) as report:
            async for line in client.lines("/api/imports/nanoclaw", body):
                if "report" in line:
                    return line["report"]
                report(line["done"], line["total"])
        return None

    told = ask(context, work)
    if as_json:
        screen.show_json(told)
        return
    for line in _told(told):
        screen.show(line)
    rows = [(_noun(noun), *counts.values()) for noun, counts in told["counts"].items()]
    screen.show_table(("", "carried over", "already there", "left out"), rows)
    for line in _remarks(told):
        screen.show(line)


def _told(report: Mapping[str, Any]) -> Iterator[str]:
    if report["is_dry_run"]:
        yield f"Nothing was written. This is what an import of {report['source']} would do:"
    else:
        yield f"{report['source']} is imported:"


def _noun(name: str) -> str:
    return name.replace("_", "-")


def _remarks(report: Mapping[str, Any]) -> Iterator[str]:
    for remark in report["remarks"]:
        count = f" ({remark['count']} times)" if remark["count"] > 1 else ""
        names = ", ".join(screen.clean(name) for name in remark["examples"])
        more = ", …" if remark["count"] > len(remark["examples"]) > 0 else ""
        about = f"{_noun(remark['about'])}{f', {names}{more}' if names else ''}"
        yield f"{_SORTS[remark['sort']]}: {about}: {remark['what']}{count}"
