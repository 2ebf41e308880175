"""Groups in the database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hallporter.domain.group import Group, Others, SenderRule
from hallporter.domain.ids import ChatId, Folder
from hallporter.stores.columns import time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.stores.queries import Row, Run


class SqlGroups:
    """`books.Groups` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, group: Group) -> None:
        self._run("group_take_over", folder_key=group.folder.casefold())
        self._run(
            "group_add",
            chat=group.chat,
            folder=group.folder,
            added_at=time_in(group.added_at),
            **_changing(group),
        )

    def save(self, group: Group) -> None:
        self._run("group_save", **_changing(group))

    def remove(self, folder: Folder) -> None:
        self._run("group_remove", folder_key=folder.casefold())

    def leave(self, folder: Folder) -> None:
        self._run("group_leave", folder_key=folder.casefold())
        self.remove(folder)

    def left_by(self, chat: ChatId) -> Sequence[Folder]:
        return [Folder(row["folder"]) for row in self._run("group_left_by", chat=chat)]

    def forget_left(self, chat: ChatId) -> None:
        self._run("group_forget_left", chat=chat)

    def of_chat(self, chat: ChatId) -> Group | None:
        return _first(self._run("group_of_chat", chat=chat))

    def of_folder(self, folder: str) -> Group | None:
        return _first(self._run("group_of_folder", folder_key=folder.casefold()))

    def main(self) -> Group | None:
        return _first(self._run("group_main"))

    def count(self) -> int:
        return int(self._run("group_count")[0]["count"])

    def all(self) -> Sequence[Group]:
        return [_group(row) for row in self._run("group_all")]


def _changing(group: Group) -> dict[str, object]:
    return {
        "folder_key": group.folder.casefold(),
        "name": group.name,
        "trigger_pattern": group.trigger,
        "requires_trigger": int(group.requires_trigger),
        "is_main": int(group.is_main),
        "agent": json.dumps(dict(group.agent)),
        "assistant_name": group.assistant_name,
        "senders": None if group.senders is None else _written(group.senders),
    }


def _first(rows: Sequence[Row]) -> Group | None:
    return _group(rows[0]) if rows else None


def _group(row: Row) -> Group:
    return Group(
        chat=ChatId(row["chat"]),
        name=row["name"],
        folder=Folder(row["folder"]),
        trigger=row["trigger_pattern"],
        requires_trigger=bool(row["requires_trigger"]),
        is_main=bool(row["is_main"]),
        added_at=time_out(row["added_at"]),
        agent=json.loads(row["agent"]),
        assistant_name=row["assistant_name"],
        senders=None if row["senders"] is None else _rule(json.loads(row["senders"])),
    )


def _written(rule: SenderRule) -> str:
    return json.dumps({"allow": sorted(rule.allow), "others": str(rule.others)})


def _rule(kept: dict[str, Any]) -> SenderRule:
    return SenderRule(allow=frozenset(kept["allow"]), others=Others(kept["others"]))
