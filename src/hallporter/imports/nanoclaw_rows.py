"""NanoClaw's tables, whatever version wrote them: what a row says, or why it says nothing."""

from __future__ import annotations

import contextlib
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
from hallporter.imports.tables import Tables
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


class Rows:
    """One database of NanoClaw's."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._tables = Tables(connection, _COLUMNS)

    def problem(self) -> str:
        """Why it is none of NanoClaw's; empty when it is one."""
        if odd := self._tables.computed():
            return f"{odd!r} in it is no table"
        if not self._tables.has("messages") and not self._tables.has("registered_groups"):
            return "it has neither messages nor groups"
        return ""

    def size(self) -> int:
        """Rows that take their time."""
        tables = ("messages", "task_run_logs")
        return sum(1 for table in tables for _ in self._tables.rows(table, columns=()))

    def chats(self) -> Iterator[ForeignChat | Unread]:
        for row in self._tables.rows("chats"):
            if isinstance(row, Unread):
                yield row
            elif (chat := text(row["jid"])) != _SYNC:
                yield _chat(chat or "", row)

    def groups(self) -> Iterator[sqlite3.Row | Unread]:
        return self._tables.rows("registered_groups")

    def sessions(self) -> Mapping[str, str]:
        """By folder."""
        rows = (row for row in self._tables.rows("sessions") if not isinstance(row, Unread))
        pairs = ((text(row["group_folder"]), text(row["session_id"])) for row in rows)
        return {folder: session for folder, session in pairs if folder and session}

    def tasks(self) -> Iterator[ForeignTask | Unread]:
        for row in self._tables.rows("scheduled_tasks"):
            yield row if isinstance(row, Unread) else _task(row)

    def runs(self) -> Iterator[ForeignRun | Unread]:
        for row in self._tables.rows("task_run_logs"):
            yield row if isinstance(row, Unread) else _run(row)

    def messages(
        self, *, assistant: str, has_own_number: bool
    ) -> Iterator[ForeignMessage | Unread]:
        """In the order in which they were sent; in the same instant, as they were stored."""
        us = _Us(name=assistant, has_own_number=has_own_number)
        given = self._given()
        unread: list[Unread] = []
        with contextlib.closing(sqlite3.connect("", check_same_thread=False)) as order:
            order.execute("CREATE TABLE line (at, number, is_timeless)")
            order.executemany("INSERT INTO line VALUES (?, ?, ?)", self._times(unread))
            yield from unread
            sorted_ = order.execute("SELECT * FROM line ORDER BY at, number")
            for at, number, is_timeless in sorted_:
                row = self._tables.row("messages", number)
                time = _Time(at=from_microseconds(at), is_guessed=bool(is_timeless))
                yield row if isinstance(row, Unread) else _message(row, time, us, given)

    def _times(self, unread: list[Unread]) -> Iterator[tuple[int, int, bool]]:
        """Of each message; one that has none has that of the newest one stored before it."""
        newest: dict[object, int] = {}
        for row in self._tables.rows("messages", columns=("chat_jid", "timestamp")):
            if isinstance(row, Unread):
                unread.append(row)
                continue
            chat, at = row["chat_jid"], microseconds(row["timestamp"])
            if at is not None:
                newest[chat] = max(at, newest.get(chat, at))
            yield newest.get(chat, 0) if at is None else at, row["number"], at is None

    def _given(self) -> Mapping[str, datetime]:
        """By chat: what an agent has seen last. Broken: nothing is known of it."""
        for row in self._tables.rows("router_state"):
            if isinstance(row, Unread) or row["key"] != "last_agent_timestamp":
                continue
            try:
                found = json.loads(row["value"])
            except (TypeError, ValueError, RecursionError):
                return {}
            if isinstance(found, dict):
                times = {str(chat): moment(at) for chat, at in found.items()}
                return {chat: at for chat, at in times.items() if at is not None}
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Time:
    at: datetime
    is_guessed: bool


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


def _message(
    row: sqlite3.Row, time: _Time, us: _Us, given: Mapping[str, datetime]
) -> ForeignMessage | Unread:
    chat, words = text(row["chat_jid"]), text(row["content"])
    id_ = text(row["id"])
    if not chat or not words or not words.strip():
        why = "it has no text" if chat else "it names no chat"
        return Unread(name=id_ or f"row {row['number']}", why=why)
    remarks = []
    if time.is_guessed:
        remarks.append("its time cannot be read: it has that of the one before it")
    if not id_:
        remarks.append("it had no id: it has one made of its place")
    sender = text(row["sender"]) or ""
    is_bot = us.said(row, words)
    return ForeignMessage(
        chat=chat,
        id=id_ or f"nanoclaw-row-{row['number']}",
        sender=sender,
        sender_name=us.name if is_bot else text(row["sender_name"]) or sender,
        text=words,
        at=time.at,
        is_bot=is_bot,
        was_given=chat in given and time.at <= given[chat],
        channel=channel_of(chat),
        remarks=tuple(remarks),
    )
