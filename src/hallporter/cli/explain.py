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
_OPEN = ("queued", "running")


def tell(
    context: typer.Context,
    *,
    message: Annotated[str, typer.Argument(help="Our id or the network's.", metavar="MESSAGE_ID")],
    as_json: AsJson = False,
) -> None:
    """Tell what became of a message, and why."""

    async def work(client: Client) -> tuple[list[Any], bool]:
        from hallporter.cli.host import in_path

        first = await client.get(f"/api/messages/{in_path(message)}/fate")
        others = first.pop("others", [])
        more = [await client.get(f"/api/messages/{in_path(o)}/fate") for o in others]
        return [first, *more], client.is_running

    fates, is_served = ask(context, work)
    if as_json:
        screen.show_json(fates[0] if len(fates) == 1 else fates)
        return
    if len(fates) > 1:
        screen.show(f"{len(fates)} messages have the id {message}:\n")
    screen.show("\n\n".join("\n".join(story(fate, is_served=is_served)) for fate in fates))


def story(fate: Mapping[str, Any], *, is_served: bool = True) -> list[str]:
    """A fate as lines: who said what, what became of it and when, and what came back."""
    state = fate["state"]
    if state == "running" and not is_served:
        state = "cut short by the end of the host"  # which had no time to write it down
    message = fate["message"]
    began = datetime.fromisoformat(message["at"])
    said = "" if message["is_bot"] else " said"
    lines = [
        f"{fate['id']} in {fate['chat']}: {state}",
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
    return [*lines, *_summary(fate, is_served=is_served)]


def _summary(fate: Mapping[str, Any], *, is_served: bool) -> list[str]:
    """How often it was tried, where that says something, and what it waits for."""
    told = []
    tries = sum(step["what"].startswith(_GIVEN) for step in fate["steps"])
    if tries > 1:
        told += ["", f"  It was given to the agent {tries} times."]
    if not is_served and (fate["state"] in _OPEN or fate.get("retry_at")):
        told += ["", "  No host runs now: it goes on when one is started with `hallporter up`."]
    return told


def _since(began: datetime, at: str) -> str:
    """Clocks may have been set back in between; nothing happens before it begins."""
    seconds = (datetime.fromisoformat(at) - began).total_seconds()
    return f"+{screen.span(max(0.0, seconds))}"


def _quoted(text: str) -> str:
    """The beginning of a text, on one line."""
    words = screen.clean(text)
    return f"“{words}”" if len(words) <= _SHOWN else f"“{words[:_SHOWN]}…” ({len(text)} characters)"
