"""NanoClaw's tables, whatever version wrote them: what a row says, or why it says nothing."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.foreign import (
    ForeignChat,
    ForeignMessage,
    ForeignRun,
    ForeignTask,
    Unread,
)
from hallporter.imports.values import flag, from_microseconds, microseconds, moment, span, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

_SYNC = "__group_sync__"  # a row of `chats` that is none
_SHAPES = {
    "@g.us": "whatsapp",
    "@s.whatsapp.net": "whatsapp",
    "@lid": "whatsapp",
    "@newsletter": "whatsapp",
}
_PREFIXES = {"tg:": "telegram", "dc:": "discord", "slack:": "slack", "web:": "web"}
_EXCERPT = 500  # characters of an error

_COLUMNS = {
    "chats": ("jid", "name", "last_message_time", "channel", "is_group"),
    "messages": (
        *("id", "chat_jid", "sender", "sender_name", "content", "timestamp", "is_from_me"),
        "is_bot_message",
    ),
    "scheduled_tasks": (
        *("id", "group_folder", "chat_jid", "prompt", "schedule_type", "schedule_value"),
        *("context_mode", "next_run", "last_run", "status", "created_at"),
    ),
    "task_run_logs": ("id", "task_id", "run_at", "duration_ms", "status", "error"),
    "router_state": ("key", "value"),
    "sessions": ("group_folder", "session_id"),
    "registered_groups": (
        *("jid", "name", "folder", "trigger_pattern", "added_at", "container_config"),
        *("requires_trigger", "is_main"),
    ),
}
# The time of a message that has none is that of the newest one stored before it.
_IN_ORDER = """
SELECT {columns}, rowid AS number, moment(timestamp) IS NULL AS is_timeless, COALESCE(
    moment(timestamp),
    MAX(moment(timestamp)) OVER (PARTITION BY chat_jid ORDER BY rowid ROWS UNBOUNDED PRECEDING),
    0
) AS at
FROM {table} ORDER BY at, number
"""
_AS_STORED = "SELECT {columns} FROM {table} ORDER BY rowid"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenTable:
    """The rest of a table that cannot be read."""

    name: str
    why: str


class Rows:
    """One database of NanoClaw's."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.create_function("moment", 1, microseconds, deterministic=True)

    def is_known(self) -> bool:
        names = (row["name"] for row in self._connection.execute("SELECT name FROM sqlite_master"))
        return not {"messages", "registered_groups"}.isdisjoint(names)

    def size(self) -> int:
        """Rows that take their time."""
        return sum(self._count(table) for table in ("messages", "task_run_logs"))

    def chats(self) -> Iterator[ForeignChat | Unread]:
        for row in self._all("chats"):
            if isinstance(row, BrokenTable):
                yield Unread(name=row.name, why=row.why)
            elif (chat := text(row["jid"])) != _SYNC:
                yield _chat(chat or "", row)

    def groups(self) -> Iterator[sqlite3.Row | BrokenTable]:
        return self._all("registered_groups")

    def sessions(self) -> Mapping[str, str]:
        """By folder."""
        rows = (row for row in self._all("sessions") if not isinstance(row, BrokenTable))
        pairs = ((text(row["group_folder"]), text(row["session_id"])) for row in rows)
        return {folder: session for folder, session in pairs if folder and session}

    def tasks(self) -> Iterator[ForeignTask | Unread]:
        for row in self._all("scheduled_tasks"):
            yield Unread(name=row.name, why=row.why) if isinstance(row, BrokenTable) else _task(row)

    def runs(self) -> Iterator[ForeignRun | Unread]:
        for row in self._all("task_run_logs"):
            yield Unread(name=row.name, why=row.why) if isinstance(row, BrokenTable) else _run(row)

    def messages(
        self, *, assistant: str, has_own_number: bool
    ) -> Iterator[ForeignMessage | Unread]:
        """In the order in which they were sent; in the same instant, as they were stored."""
        us = _Us(name=assistant, has_own_number=has_own_number)
        given = self._given()
        for row in self._all("messages", _IN_ORDER):
            if isinstance(row, BrokenTable):
                yield Unread(name=row.name, why=row.why)
            else:
                yield _message(row, us, given)

    def _given(self) -> Mapping[str, datetime]:
        """By chat: what an agent has seen last. Broken: nothing is known of it."""
        for row in self._all("router_state"):
            if isinstance(row, BrokenTable) or row["key"] != "last_agent_timestamp":
                continue
            try:
                found = json.loads(row["value"])
            except (TypeError, ValueError, RecursionError):
                return {}
            if isinstance(found, dict):
                times = {str(chat): moment(at) for chat, at in found.items()}
                return {chat: at for chat, at in times.items() if at is not None}
        return {}

    def _all(self, table: str, statement: str = _AS_STORED) -> Iterator[sqlite3.Row | BrokenTable]:
        """What can be read of a damaged file is read; a table that is not there is empty."""
        try:
            there = self._columns(table)
            if not there:
                return
            # Older versions lack some columns.
            names = (name if name in there else f"NULL AS {name}" for name in _COLUMNS[table])
            asked = statement.format(columns=", ".join(names), table=table)
            # Not `yield from`: that would close the cursor, perhaps after its database.
            for row in self._connection.execute(asked):  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            yield BrokenTable(name=f"table {table}", why=f"the rest cannot be read: {error}")

    def _columns(self, table: str) -> frozenset[str]:
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        return frozenset(row["name"] for row in rows)

    def _count(self, table: str) -> int:
        try:
            statement = f"SELECT COUNT(*) FROM {table}"  # noqa: S608  a name of ours
            return int(self._connection.execute(statement).fetchone()[0])
        except sqlite3.Error:  # not there, or told of when it is read
            return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Us:
    """How the assistant's own words are known: older versions have no flag for them."""

    name: str
    has_own_number: bool

    def said(self, row: sqlite3.Row, words: str) -> bool:
        if row["is_bot_message"] is not None:
            return flag(row["is_bot_message"], otherwise=False)
        is_from_us = self.has_own_number and flag(row["is_from_me"], otherwise=False)
        return is_from_us or words.startswith(f"{self.name}:")


def channel_of(chat: str, named: object = None) -> str:
    """By its name there, else by the shape of the id; empty when neither tells."""
    if found := text(named):
        return found[:64]
    by_shape = next((name for shape, name in _SHAPES.items() if chat.endswith(shape)), "")
    return by_shape or next((name for p, name in _PREFIXES.items() if chat.startswith(p)), "")


def _chat(chat: str, row: sqlite3.Row) -> ForeignChat:
    return ForeignChat(
        chat=chat,
        name=text(row["name"]),
        channel=channel_of(chat, row["channel"]),
        is_group=flag(row["is_group"], otherwise=chat.endswith("@g.us")),
        last_at=moment(row["last_message_time"]),
    )


def _task(row: sqlite3.Row) -> ForeignTask | Unread:
    id_, folder = text(row["id"]), text(row["group_folder"])
    if not id_ or not folder:
        return Unread(name=id_ or "a task without an id", why="it has no id or no group")
    return ForeignTask(
        id=id_,
        folder=folder,
        chat=text(row["chat_jid"]) or "",
        prompt=text(row["prompt"]) or "",
        schedule_type=text(row["schedule_type"]) or "",
        schedule_value=text(row["schedule_value"]) or "",
        context_mode=text(row["context_mode"]) or "",
        status=text(row["status"]) or "",
        next_at=moment(row["next_run"]),
        last_at=moment(row["last_run"]),
        created_at=moment(row["created_at"]),
    )


def _run(row: sqlite3.Row) -> ForeignRun | Unread:
    task, at = text(row["task_id"]), moment(row["run_at"])
    if not task or at is None:
        return Unread(name=f"run {row['id']}", why="it has no task or no time that can be read")
    return ForeignRun(
        task=task,
        at=at,
        took=span(row["duration_ms"]),
        is_ok=text(row["status"]) == "success",
        error=(text(row["error"]) or "")[:_EXCERPT],
    )


def _message(row: sqlite3.Row, us: _Us, given: Mapping[str, datetime]) -> ForeignMessage | Unread:
    chat, words = text(row["chat_jid"]), text(row["content"])
    id_ = text(row["id"])
    if not chat or not words or not words.strip():
        why = "it has no text" if chat else "it names no chat"
        return Unread(name=id_ or f"row {row['number']}", why=why)
    remarks = []
    if row["is_timeless"]:
        remarks.append("its time cannot be read: it has that of the one before it")
    if not id_:
        remarks.append("it had no id: it has one made of its place")
    sender = text(row["sender"]) or ""
    is_bot = us.said(row, words)
    at = from_microseconds(row["at"])
    return ForeignMessage(
        chat=chat,
        id=id_ or f"nanoclaw-row-{row['number']}",
        sender=sender,
        sender_name=us.name if is_bot else text(row["sender_name"]) or sender,
        text=words,
        at=at,
        is_bot=is_bot,
        was_given=chat in given and at <= given[chat],
        channel=channel_of(chat),
        remarks=tuple(remarks),
    )
