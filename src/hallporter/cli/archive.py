"""`hallporter backup`, `restore` and `forget`: keeping everything, and keeping nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter import __version__
from hallporter.cli import screen
from hallporter.cli.progress import progress
from hallporter.cli.shell import AsJson, ask, shell_of

if TYPE_CHECKING:
    from hallporter.cli.host import Client
    from hallporter.stores.manifest import Manifest

File = Annotated[Path, typer.Argument(help="Ends in .tar.gz by custom.", metavar="FILE")]


def backup(
    context: typer.Context,
    *,
    file: File,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a file that is no backup.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the home into one file. Chats, groups' files, settings and keys are in it; logs, and
    what lies in run/ and data/ipc/, are not. It works while the host runs, too."""
    from hallporter.clock import SystemClock
    from hallporter.home import open_home
    from hallporter.settings import environment, load
    from hallporter.stores.backup import Source, write_backup

    home = open_home(shell_of(context).home)
    database = load(home.path, environment()).settings.store.path
    if not database.exists():  # a new home: make what it lacks
        ask(context, lambda client: client.get("/api/status"))
    with progress("backup") as report:
        manifest = write_backup(
            file,
            Source(home=home.path, database=database),
            version=__version__,
            made_at=SystemClock().now().isoformat(),
            is_forced=force,
            report=report,
        )
    told = {"file": str(file.absolute()), **_told(manifest), "left_out": dict(manifest.left_out)}
    if as_json:
        screen.show_json(told)
        return
    screen.show(f"{told['file']}: {_summary(manifest)}.")
    for name, why in manifest.left_out.items():
        screen.show(f"left out: {name}: {why}")


def restore(
    context: typer.Context,
    *,
    file: File,
    force: Annotated[
        bool, typer.Option("--force", help="Move aside what the home holds now.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a backup into an empty home; no host may run there."""
    from hallporter.clock import SystemClock
    from hallporter.home import hold, open_home
    from hallporter.removal import remove
    from hallporter.settings import environment, load
    from hallporter.stores.restore import (
        place_of,
        put_in_place,
        refuse_in_use,
        refuse_occupied,
    )
    from hallporter.stores.unpacking import read_backup

    home = open_home(shell_of(context).home)
    now = SystemClock().now()
    with hold(home, url="", started=now):
        if not force:
            refuse_occupied(home.path, home.database)
        unpacked = home.restoring_dir
        with progress("restore") as report:
            manifest = read_backup(file, unpacked, report=report)
        try:
            wanted = load(unpacked, environment()).settings.store.path
            database = place_of(wanted, unpacked=unpacked, home=home.path)
            if not force:
                refuse_occupied(home.path, database)
            refuse_in_use(database)
        except BaseException:
            remove(unpacked)
            raise
        aside = put_in_place(
            unpacked,
            home.path,
            database=database,
            stamp=now.strftime("%Y%m%dT%H%M%SZ"),
            journal=home.restore_journal,
        )
    open_home(home.path)
    if as_json:
        moved = {
            "moved_aside": None if aside.home is None else str(aside.home),
            "database_moved_aside": None if aside.database is None else str(aside.database),
        }
        screen.show_json({"home": str(home.path), **_told(manifest), **moved})
        return
    screen.show(f"{home.path} holds the backup of {screen.moment(manifest.made_at)} now:")
    screen.show(f"{_summary(manifest)}.")
    screen.show("Browsers have to log in anew.")
    if aside.home is not None:
        screen.show(f"What was there before is in {aside.home}.")
    if aside.database is not None:
        screen.show(f"The database that was there before is in {aside.database}.")


def forget(
    context: typer.Context,
    *,
    chat: Annotated[str, typer.Argument(help="For example web:family.", metavar="CHAT_ID")],
    yes: Annotated[bool, typer.Option("--yes", help="Answer questions with yes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove all of a chat for good. Texts, sessions and memory go; how much that was is said."""
    if not yes:
        _make_sure(chat)

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        from hallporter.cli.host import LONG, REPEAT

        answer = await client.post("/api/forget", {"chat": chat}, patience=LONG, advice=REPEAT)
        return answer["data"]

    forgotten = ask(context, work)
    if as_json:
        screen.show_json(forgotten)
        return
    from hallporter.domain.removal import told

    screen.show(f"{chat} is forgotten: {told(forgotten['removed'])} removed.")
    stays = "The chat stays registered." if forgotten["is_registered"] else "It has no group."
    screen.show(f"{stays} Backups, and copies of the database, still hold what was said.")
    if not forgotten["is_scrubbed"]:
        screen.note(
            "The database's files may still hold words of it: another program reads the database,"
            " or the disk is full. The host tries again every hour, and at its next start."
        )


def _make_sure(chat: str) -> None:
    """Asked before anything is looked at: there is no way back."""
    from hallporter.domain.errors import RefusedError

    if not sys.stdin.isatty():
        raise RefusedError(f"what is forgotten cannot be had back: say --yes to forget {chat}")
    if not typer.confirm(f"Remove all that was said in {chat}, and its files, for good?"):
        raise RefusedError("nothing was removed")


def _told(manifest: Manifest) -> dict[str, object]:
    return {
        "version": manifest.version,
        "made_at": manifest.made_at,
        "schema": manifest.schema,
        "rows": dict(manifest.rows),
        "files": len(manifest.members),
        "bytes": manifest.size,
    }


def _summary(manifest: Manifest) -> str:
    from hallporter.domain.removal import told

    rows = {table: manifest.rows.get(table, 0) for table in ("messages", "chats", "groups")}
    counts = told({**rows, "files": len(manifest.members)})
    return f"{counts}, {manifest.size / (1 << 20):.1f} MiB"
