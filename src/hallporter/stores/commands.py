"""The record of commands in the database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hallporter.domain.command import Box, Carried
from hallporter.domain.ids import CommandId, Folder
from hallporter.stores.columns import time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.stores.queries import Row, Run


class SqlCommands:
    """`books.Commands` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, command: Carried) -> None:
        self._run(
            "command_add",
            id=command.id,
            folder=command.folder,
            box=str(command.box),
            name=command.name,
            at=time_in(command.at),
            kind=command.kind,
            is_ok=int(command.is_ok),
            why=command.why,
            result=json.dumps(dict(command.result)),
        )

    def get(self, command: CommandId) -> Carried | None:
        rows = self._run("command_get", id=command)
        return _carried(rows[0]) if rows else None

    def all(self, folder: Folder | None, limit: int) -> Sequence[Carried]:
        if folder is None:
            rows = self._run("command_all", limit=limit)
        else:
            rows = self._run("command_of_folder", folder=folder, limit=limit)
        return [_carried(row) for row in rows]


def _carried(row: Row) -> Carried:
    return Carried(
        id=CommandId(row["id"]),
        folder=Folder(row["folder"]),
        box=Box(row["box"]),
        name=row["name"],
        at=time_out(row["at"]),
        kind=row["kind"],
        is_ok=bool(row["is_ok"]),
        why=row["why"],
        result=json.loads(row["result"]),
    )
