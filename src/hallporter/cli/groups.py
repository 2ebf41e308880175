"""`hallporter groups`: which chats have a folder, a trigger and an agent of their own."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter.cli import group_options as options
from hallporter.cli import screen
from hallporter.cli.group_options import Folder
from hallporter.cli.shell import AsJson, ask, shell_of

if TYPE_CHECKING:
    from hallporter.cli.host import Client

app = typer.Typer(
    help="Chats with a folder, a trigger and an agent of their own.", no_args_is_help=True
)


@app.command("list")
def show_all(
    context: typer.Context,
    *,
    all_chats: Annotated[
        bool, typer.Option("--all", help="All chats that were seen, also those that are no groups.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the groups."""
    if all_chats:
        _show_chats(ask(context, _chats), as_json=as_json)
        return
    groups = ask(context, _all)
    if as_json:
        screen.show_json(groups)
        return
    rows = [
        (
            group["folder"],
            group["name"],
            group["chat"],
            group["trigger"] if group["requires_trigger"] and not group["is_main"] else "-",
            group["agent"],
            screen.yes_or_no(group["is_main"]),
        )
        for group in groups
    ]
    screen.show_table(("folder", "name", "chat", "trigger", "agent", "main"), rows)


def _show_chats(chats: Any, *, as_json: bool) -> None:  # noqa: ANN401  JSON
    if as_json:
        screen.show_json(chats)
        return
    rows = [
        (
            chat["chat"],
            chat["name"],
            chat["channel"],
            chat.get("last_activity", "-"),
            chat.get("folder", "-"),
        )
        for chat in chats
    ]
    screen.show_table(("chat", "name", "channel", "last activity", "folder"), rows)


@app.command()
def add(
    context: typer.Context,
    *,
    chat: Annotated[str, typer.Argument(help="For example web:family.", metavar="CHAT_ID")],
    name: Annotated[
        str, typer.Option(help="How people call it.", metavar="NAME", show_default=False)
    ],
    folder: Annotated[
        str, typer.Option(help="Its folder in the home.", metavar="FOLDER", show_default=False)
    ],
    trigger: options.Trigger = None,
    no_trigger: Annotated[
        bool, typer.Option("--no-trigger", help="Every message wakes the agent.")
    ] = False,
    main: options.Main = False,
    agent: options.Agent = None,
    command: options.Command = None,
    sandbox: options.Sandbox = None,
    mount: options.Mounts = None,
    assistant_name: options.AssistantName = None,
    allow_sender: options.AllowSender = None,
    allow_nobody: options.AllowNobody = False,
    others: options.OtherSenders = None,
    yes: options.Yes = False,
    as_json: AsJson = False,
) -> None:
    """Register a chat as a group."""
    body: dict[str, object] = {
        "chat": chat,
        "name": name,
        "folder": folder,
        "requires_trigger": not no_trigger,
        "is_main": main,
        **options.given(trigger=trigger, agent=agent, assistant_name=assistant_name),
        **options.agent_settings(command, sandbox, mount),
        **options.senders(allow_sender, others, nobody=allow_nobody),
    }

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        if main:
            await _may_move_main(client, to=folder, is_agreed=yes)
        return (await client.post("/api/groups", body))["data"]

    group = ask(context, work)
    if as_json:
        screen.show_json(group)
    else:
        screen.show(f"{group['chat']} is the group {group['folder']!r} now.")


@app.command("show")
def show_one(context: typer.Context, *, folder: Folder, as_json: AsJson = False) -> None:
    """Show one group."""
    group = ask(context, lambda client: _one(client, folder))
    if as_json:
        screen.show_json(group)
        return
    settings = group.pop("agent_settings")
    group["assistant_name"] = group["assistant_name"] or "-"
    group["senders"] = _who_may_talk(group["senders"])
    rows = [*group.items(), *((f"agent.{key}", value) for key, value in settings.items())]
    shown = [(key, screen.yes_or_no(v) if isinstance(v, bool) else v) for key, v in rows]
    screen.show_table(("what", "value"), shown)


@app.command("set")
def change(
    context: typer.Context,
    *,
    folder: Folder,
    name: Annotated[str | None, typer.Option(help="How people call it.", metavar="NAME")] = None,
    trigger: options.Trigger = None,
    trigger_needed: Annotated[
        bool | None,
        typer.Option("--trigger-needed/--no-trigger", help="Whether only the trigger wakes it."),
    ] = None,
    main: options.Main = False,
    agent: options.Agent = None,
    command: options.Command = None,
    sandbox: options.Sandbox = None,
    mount: options.Mounts = None,
    no_mounts: options.NoMounts = False,
    assistant_name: options.AssistantName = None,
    allow_sender: options.AllowSender = None,
    allow_everyone: options.AllowEveryone = False,
    allow_nobody: options.AllowNobody = False,
    others: options.OtherSenders = None,
    yes: options.Yes = False,
    as_json: AsJson = False,
) -> None:
    """Change a group: only what is given changes."""
    body = {
        **options.given(
            name=name,
            trigger=trigger,
            requires_trigger=trigger_needed,
            is_main=main or None,
            agent=agent,
            assistant_name=assistant_name,
        ),
        **options.agent_settings(command, sandbox, mount, no_mounts=no_mounts),
        **options.senders(allow_sender, others, everyone=allow_everyone, nobody=allow_nobody),
    }
    if not body:
        raise typer.BadParameter("nothing to change: name at least one option")

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        from hallporter.cli.host import in_path

        if main:
            await _may_move_main(client, to=folder, is_agreed=yes)
        return (await client.patch(f"/api/groups/{in_path(folder)}", body))["data"]

    group = ask(context, work)
    if as_json:
        screen.show_json(group)
    else:
        screen.show(f"The group {group['folder']!r} is changed.")


@app.command()
def remove(
    context: typer.Context,
    *,
    folder: Folder,
    purge: Annotated[
        bool, typer.Option("--purge", help="Files and history go too, for good.")
    ] = False,
    yes: options.Yes = False,
) -> None:
    """Remove a group; its folder and history stay unless you say --purge."""

    async def work(client: Client) -> tuple[Any, str]:
        from hallporter.cli.host import LONG, REPEAT, in_path

        group = await _one(client, folder)
        path = f"/api/groups/{in_path(folder)}"
        if not purge:
            chat = f"/api/chats/{in_path(group['chat'])}/messages"
            has_history = bool((await client.get(chat, limit="1"))["messages"])
            await client.delete(path, patience=LONG)
            files = shell_of(context).home / "groups" / group["folder"]
            return group, _kept(group, has_files=files.exists(), has_history=has_history)
        if not yes:
            _make_sure(group)
        headers = await client.delete(path, patience=LONG, advice=REPEAT, purge="true")
        return group, _gone(json.loads(headers.get("X-Removed", "{}")))

    group, told = ask(context, work)
    screen.show(f"The group {group['folder']!r} is removed. {told}")


def _make_sure(group: Any) -> None:  # noqa: ANN401  JSON
    from hallporter.domain.errors import RefusedError

    folder, chat = group["folder"], group["chat"]
    if not sys.stdin.isatty():
        message = f"what is purged cannot be had back: say --yes to purge {folder!r} ({chat})"
        raise RefusedError(message)
    if not typer.confirm(f"Remove {folder!r}, its files and what was said in {chat}, for good?"):
        raise RefusedError("nothing was removed")


def _kept(group: Any, *, has_files: bool, has_history: bool) -> str:  # noqa: ANN401  JSON
    files = f"its folder groups/{group['folder']}" if has_files else ""
    history = "what was said in the chat" if has_history else ""
    kept = " and ".join(filter(None, (files, history)))
    if not kept:
        return "It had no files, and nothing was said in its chat."
    return f"{kept[0].upper()}{kept[1:]} {'are' if files and history else 'is'} kept."


def _gone(removed: Any) -> str:  # noqa: ANN401  JSON
    from hallporter.domain.removal import told

    return (
        f"Its files are gone, and so is what was said in the chat: {told(removed)} removed."
        " Backups, and copies of the database, still hold what was said."
    )


def _who_may_talk(rule: Any) -> str:  # noqa: ANN401  JSON
    if rule is None:
        return "everyone"
    return f"{', '.join(rule['allow']) or 'nobody'}; others: {rule['others']}"


async def _all(client: Client) -> Any:  # noqa: ANN401  JSON
    return (await client.get("/api/groups"))["data"]


async def _chats(client: Client) -> Any:  # noqa: ANN401  JSON
    return (await client.get("/api/chats"))["data"]


async def _one(client: Client, folder: str) -> Any:  # noqa: ANN401  JSON
    from hallporter.cli.host import in_path

    return (await client.get(f"/api/groups/{in_path(folder)}"))["data"]


async def _may_move_main(client: Client, *, to: str, is_agreed: bool) -> None:
    """Only one group is main: taking the flag from another is asked for, and told."""
    from hallporter.domain.errors import RefusedError

    main = next((group for group in await _all(client) if group["is_main"]), None)
    if main is None or main["folder"].casefold() == to.casefold():
        return
    told = f"{main['folder']!r} is no longer main"
    if main["requires_trigger"]:
        told += f": from now on it answers when a message begins with {main['trigger']}"
    if is_agreed:
        screen.note(told)
        return
    if not sys.stdin.isatty():
        message = f"{main['folder']!r} is the main group: say --yes to make {to!r} main instead"
        raise RefusedError(message)
    if not typer.confirm(f"{main['folder']!r} is the main group. Make {to!r} main instead?"):
        raise RefusedError("nothing was changed")
    screen.note(told)
