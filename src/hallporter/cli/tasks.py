"""`hallporter tasks`: standing prompts, and what became of each of their ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter.cli import screen
from hallporter.cli.shell import AsJson, ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.cli.host import Client

app = typer.Typer(help="Standing prompts: what an agent does at set times.", no_args_is_help=True)

_PAGE = 1000  # ticks asked for at once
_EXCERPT = 50  # characters of a prompt in a table

Task = Annotated[str, typer.Argument(help="The task's id.", metavar="TASK", show_default=False)]
Cron = Annotated[
    str | None,
    typer.Option(help="Minute, hour, day, month, weekday: '0 9 * * 1-5'; or '@daily' and such."),
]
Every = Annotated[str | None, typer.Option(help="Milliseconds, at least 1000.", metavar="MS")]
AtTime = Annotated[
    str | None,
    typer.Option("--at", help="Once, at this local time: 2030-12-24T18:00.", metavar="LOCAL"),
]
Zone = Annotated[
    str | None, typer.Option("--tz", help="The time zone, such as Europe/Paris.", metavar="ZONE")
]
Misfire = Annotated[
    str | None, typer.Option(help="For missed ticks: once (the last), skip or all.")
]


@app.command("list")
def show_all(
    context: typer.Context,
    *,
    folder: Annotated[
        str | None, typer.Argument(help="Of this group alone.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks."""

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        query = {} if folder is None else {"group": folder}
        return (await client.get("/api/tasks", **query))["data"]

    tasks = ask(context, work)
    if as_json:
        screen.show_json(tasks)
        return
    rows = [
        (
            task["id"],
            task["group"],
            task["schedule_type"],
            task["schedule_value"],
            task["timezone"],
            task["status"],
            screen.moment(task["next_run"]),
            _excerpt(task["prompt"]),
        )
        for task in tasks
    ]
    columns = ("task", "group", "type", "schedule", "zone", "status", "next run", "prompt")
    screen.show_table(columns, rows)


@app.command()
def add(
    context: typer.Context,
    *,
    folder: Annotated[str, typer.Argument(help="The group's folder.", show_default=False)],
    prompt: Annotated[str, typer.Option(help="What the agent is to do.", show_default=False)],
    cron: Cron = None,
    every: Every = None,
    at: AtTime = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="In a session of its own, not the group's.")
    ] = False,
    zone: Zone = None,
    misfire: Misfire = None,
    as_json: AsJson = False,
) -> None:
    """Make a task for a group."""
    schedule = _schedule(cron, every, at)
    if not schedule:
        raise typer.BadParameter("when? name one of --cron, --every and --at")
    body = {
        "group": folder,
        "prompt": prompt,
        "context_mode": "isolated" if isolated else "group",
        **schedule,
        **_given(timezone=zone, misfire=misfire),
    }

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        return await client.post("/api/tasks", body)

    _show(ask(context, work), "is made", as_json=as_json)


@app.command()
def update(
    context: typer.Context,
    *,
    task: Task,
    prompt: Annotated[str | None, typer.Option(help="What the agent is to do.")] = None,
    cron: Cron = None,
    every: Every = None,
    at: AtTime = None,
    isolated: Annotated[
        bool | None,
        typer.Option("--isolated/--in-group", help="In a session of its own, or the group's."),
    ] = None,
    zone: Zone = None,
    misfire: Misfire = None,
    as_json: AsJson = False,
) -> None:
    """Change a task: only what is given changes; a new schedule counts from now."""
    modes = {True: "isolated", False: "group", None: None}
    body = {
        **_schedule(cron, every, at),
        **_given(prompt=prompt, context_mode=modes[isolated], timezone=zone, misfire=misfire),
    }
    if not body:
        raise typer.BadParameter("nothing to change: name at least one option")

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        return await client.patch(_address(task), body)

    _show(ask(context, work), "is changed", as_json=as_json)


@app.command()
def pause(context: typer.Context, *, task: Task, as_json: AsJson = False) -> None:
    """No more ticks until it is resumed; what waits is skipped."""
    answer = ask(context, lambda client: client.post(_address(task, "/pause"), {}))
    _show(answer, "is paused", as_json=as_json)


@app.command()
def resume(context: typer.Context, *, task: Task, as_json: AsJson = False) -> None:
    """Ticks again, from now on."""
    answer = ask(context, lambda client: client.post(_address(task, "/resume"), {}))
    _show(answer, "is resumed", as_json=as_json)


@app.command()
def cancel(context: typer.Context, *, task: Task) -> None:
    """Remove a task and its ticks."""
    ask(context, lambda client: client.delete(_address(task)))
    screen.show(f"The task {task} is gone, and so are its ticks.")


@app.command()
def run(context: typer.Context, *, task: Task, as_json: AsJson = False) -> None:
    """One tick now, whatever the schedule says."""

    async def work(client: Client) -> tuple[Any, bool]:
        answer = await client.post(_address(task, "/run"), {})
        return answer["data"], client.is_running

    tick, is_running = ask(context, work)
    if as_json:
        screen.show_json(tick)
    elif is_running:
        screen.show(f"The task {task} runs as soon as its chat is free.")
    else:
        screen.show(f"The task {task} runs when the host does: `hallporter up`.")


@app.command()
def history(
    context: typer.Context,
    *,
    task: Task,
    last: Annotated[
        int | None, typer.Option(min=1, help="Only so many of the newest.", metavar="N")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what became of every tick, the newest first."""

    async def work(client: Client) -> list[Any]:
        found: list[Any] = []
        while last is None or len(found) < last:
            limit = _PAGE if last is None else min(_PAGE, last - len(found))
            query = {"before": found[-1]["due"]} if found else {}
            page = await client.get(_address(task, "/ticks"), limit=str(limit), **query)
            found += page["data"]
            if page["count"] < limit:
                break
        return found

    ticks = ask(context, work)
    if as_json:
        screen.show_json(ticks)
        return
    rows = [
        (
            screen.moment(tick["due"]),
            tick["state"],
            screen.moment(tick.get("started")),
            screen.moment(tick.get("ended")),
            screen.span(tick["late_ms"] / 1000) if "late_ms" in tick else "",
            tick["attempts"],
            tick.get("why", ""),
        )
        for tick in ticks
    ]
    screen.show_table(("due", "state", "started", "ended", "late by", "attempts", "why"), rows)


def _address(task: str, verb: str = "") -> str:
    from hallporter.cli.host import in_path

    return f"/api/tasks/{in_path(task)}{verb}"


def _show(answer: Mapping[str, Any], done: str, *, as_json: bool) -> None:
    if note := answer.get("note"):
        screen.note(note)
    task = answer["data"]
    if as_json:
        screen.show_json(task)
        return
    after = screen.moment(task["next_run"])
    screen.show(f"The task {task['id']} {done}." + (f" Next run: {after}." if after else ""))


def _schedule(cron: str | None, every: str | None, at: str | None) -> dict[str, object]:
    kinds = {"cron": cron, "interval": every, "once": at}
    given = [(kind, value) for kind, value in kinds.items() if value is not None]
    if len(given) > 1:
        raise typer.BadParameter("name only one of --cron, --every and --at")
    return {"schedule_type": given[0][0], "schedule_value": given[0][1]} if given else {}


def _given(**values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def _excerpt(prompt: str) -> str:
    text = screen.clean(prompt)
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
