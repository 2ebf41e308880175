"""`hallporter status`: what runs, what waits, what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hallporter.cli import screen
from hallporter.cli.shell import AsJson, ask, shell_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.cli.host import Client

_TROUBLES = 5  # shown


def show_status(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show what runs, what waits and what failed."""

    async def work(client: Client) -> tuple[Any, str]:
        where = f"at {client.http.base_url}" if client.is_running else ""
        return (await client.get("/api/status"))["data"], where

    status, where = ask(context, work)
    if as_json:
        screen.show_json(status)
        return
    home = shell_of(context).home
    if where:
        screen.show(f"Hallporter {status['version']} runs {where}, home {home}.")
    else:
        screen.show(f"No host is running for {home}: start it with `hallporter up`.")
    if where and status["problems"]:
        screen.show(screen.clean(f"Not ready: {'; '.join(status['problems'])}."))
    for notice in status["notices"]:
        screen.show(f"{screen.moment(notice['at'])}: {screen.clean(notice['text'])}")
    screen.show("")
    screen.show_table(("what", "now"), _figures(status))
    _show_parts(status)


def _figures(status: Mapping[str, Any]) -> list[tuple[str, object]]:
    engine = status["engine"]
    oldest = engine["oldest_wait"]
    storage = status["storage"]
    disk = f"{screen.size(storage['free'])} of {screen.size(storage['total'])}"
    return [
        ("groups", status["groups"]),
        *((f"tasks {state}", count) for state, count in status["tasks"].items()),
        *([("next tick", screen.moment(status["next_tick"]))] if status["next_tick"] else []),
        ("turns running", engine["running"]),
        ("chats waiting", engine["waiting"]),
        ("longest wait", "-" if oldest is None else f"{oldest:.1f} s"),
        *((f"messages {state}", count) for state, count in status["messages"].items()),
        *((f"outbox {state}", count) for state, count in status["outbox"].items()),
        ("failed turns (24 h)", len(status["failures"])),
        ("files in errors/", storage["errors"]),
        ("database", screen.size(storage["database"])),
        ("groups' files", screen.size(storage["groups"])),
        ("log files", screen.size(storage["logs"])),
        ("disk free", disk),
    ]


def _show_parts(status: Mapping[str, Any]) -> None:
    channels = [(one["name"], "works" if one["ok"] else one["why"]) for one in status["channels"]]
    sandboxes = [
        (
            one["name"],
            screen.yes_or_no(one["is_chosen"]),
            "; ".join([one["why"], *one["unenforced"], *one["warnings"]]).strip("; "),
        )
        for one in status["sandboxes"]
    ]
    agents = [
        (
            one["folder"],
            one["state"],
            screen.span(one["age"]),
            screen.size(one["memory"]),
            one["pid"],
        )
        for one in status["agents"]
    ]
    troubles = [
        (one["count"], screen.moment(one["last"]), ", ".join(one["chats"]), one["why"])
        for one in status["troubles"][:_TROUBLES]
    ]
    for columns, rows in (
        (("channel", "state"), channels),
        (("sandbox", "chosen", "notes"), sandboxes),
        (("agent in", "state", "age", "memory", "pid"), agents),
        (("failed", "last", "chats", "why"), troubles),
    ):
        if rows:
            screen.show("")
            screen.show_table(columns, rows)
