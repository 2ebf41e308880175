"""`hallporter explain`: the fate of one message, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter.cli import screen
from hallporter.cli.shell import AsJson, ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.cli.host import Client


def tell(
    context: typer.Context,
    *,
    message: Annotated[str, typer.Argument(help="Our id or the network's.", metavar="MESSAGE_ID")],
    as_json: AsJson = False,
) -> None:
    """Tell what became of a message, and why."""

    async def work(client: Client) -> list[Any]:
        from hallporter.cli.host import in_path

        first = await client.get(f"/api/messages/{in_path(message)}/fate")
        others = first.pop("others", [])
        return [first, *[await client.get(f"/api/messages/{in_path(o)}/fate") for o in others]]

    fates = ask(context, work)
    if as_json:
        screen.show_json(fates[0] if len(fates) == 1 else fates)
        return
    if len(fates) > 1:
        screen.show(f"{len(fates)} messages have the id {message}:\n")
    screen.show("\n\n".join("\n".join(story(fate)) for fate in fates))


def story(fate: Mapping[str, Any]) -> list[str]:
    """A fate as lines."""
    lines = [f"{fate['id']} in {fate['chat']}: {fate['state']}"]
    for step in fate["steps"]:
        why = f" ({step['why']})" if step.get("why") else ""
        lines.append(f"  {screen.moment(step['at'])}  {step['what']}{why}")
    if fate["replies"]:
        lines.append(f"  replies: {', '.join(fate['replies'])}")
    return lines
