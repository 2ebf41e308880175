"""`hallporter explain`: the story of one message, from who said it to what came back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter.cli import screen
from hallporter.cli.shell import AsJson, ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.cli.host import Client

_SHOWN = 200  # characters of a text
_GIVEN = "given to the agent"


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
    """A fate as lines: who said what, what became of it and when, and what came back."""
    message = fate["message"]
    began = datetime.fromisoformat(message["at"])
    said = "" if message["is_bot"] else " said"
    lines = [
        f"{fate['id']} in {fate['chat']}: {fate['state']}",
        "",
        f"  {screen.clean(message['sender'])}{said}, {screen.moment(message['at'])}:",
        f"    {_quoted(message['text'])}",
        "",
    ]
    passed = [_since(began, step["at"]) for step in fate["steps"]]
    width = max(map(len, passed))
    for since, step in zip(passed, fate["steps"], strict=True):
        why = f" ({screen.clean(step['why'])})" if step.get("why") else ""
        lines.append(f"    {since:>{width}}  {step['what']}{why}")
    for reply in fate["said"]:
        when = _since(began, reply["at"])
        lines += ["", f"  {screen.clean(reply['sender'])}, {when} ({reply['id']}):"]
        lines.append(f"    {_quoted(reply['text'])}")
        lines += [f"    {line}" for line in screen.files(reply)]
    return [*lines, *_summary(fate)]


def _summary(fate: Mapping[str, Any]) -> list[str]:
    """How often it was tried, where that says something."""
    tries = sum(step["what"].startswith(_GIVEN) for step in fate["steps"])
    return ["", f"  It was given to the agent {tries} times."] if tries > 1 else []


def _since(began: datetime, at: str) -> str:
    """Clocks may have been set back in between; nothing happens before it begins."""
    seconds = (datetime.fromisoformat(at) - began).total_seconds()
    return f"+{screen.span(max(0.0, seconds))}"


def _quoted(text: str) -> str:
    """The beginning of a text, on one line."""
    words = screen.clean(text)
    return f"“{words}”" if len(words) <= _SHOWN else f"“{words[:_SHOWN]}…” ({len(text)} characters)"
