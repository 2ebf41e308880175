"""A NanoClaw v1 folder as its owner would have it, made from the documented schema."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
CREATE TABLE chats (
    jid TEXT PRIMARY KEY, name TEXT, last_message_time TEXT, channel TEXT,
    is_group INTEGER DEFAULT 0
);
CREATE TABLE messages (
    id TEXT, chat_jid TEXT, sender TEXT, sender_name TEXT, content TEXT, timestamp TEXT,
    is_from_me INTEGER, is_bot_message INTEGER DEFAULT 0,
    PRIMARY KEY (id, chat_jid), FOREIGN KEY (chat_jid) REFERENCES chats (jid)
);
CREATE INDEX idx_timestamp ON messages (timestamp);
CREATE TABLE scheduled_tasks (
    id TEXT PRIMARY KEY, group_folder TEXT NOT NULL, chat_jid TEXT NOT NULL, prompt TEXT NOT NULL,
    schedule_type TEXT NOT NULL, schedule_value TEXT NOT NULL,
    context_mode TEXT DEFAULT 'isolated', next_run TEXT, last_run TEXT, last_result TEXT,
    status TEXT DEFAULT 'active', created_at TEXT NOT NULL
);
CREATE TABLE task_run_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_at TEXT NOT NULL,
    duration_ms INTEGER NOT NULL, status TEXT NOT NULL, result TEXT, error TEXT
);
CREATE TABLE router_state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sessions (group_folder TEXT PRIMARY KEY, session_id TEXT NOT NULL);
CREATE TABLE registered_groups (
    jid TEXT PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL UNIQUE,
    trigger_pattern TEXT NOT NULL, added_at TEXT NOT NULL, container_config TEXT,
    requires_trigger INTEGER DEFAULT 1
);
"""

# The first release: no channel, no group flag, no bot flag, no context mode, no trigger rule.
OLD_SCHEMA = """
CREATE TABLE chats (jid TEXT PRIMARY KEY, name TEXT, last_message_time TEXT);
CREATE TABLE messages (
    id TEXT, chat_jid TEXT, sender TEXT, sender_name TEXT, content TEXT, timestamp TEXT,
    is_from_me INTEGER, PRIMARY KEY (id, chat_jid)
);
CREATE TABLE scheduled_tasks (
    id TEXT PRIMARY KEY, group_folder TEXT NOT NULL, chat_jid TEXT NOT NULL, prompt TEXT NOT NULL,
    schedule_type TEXT NOT NULL, schedule_value TEXT NOT NULL, next_run TEXT, last_run TEXT,
    last_result TEXT, status TEXT DEFAULT 'active', created_at TEXT NOT NULL
);
CREATE TABLE registered_groups (
    jid TEXT PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL UNIQUE,
    trigger_pattern TEXT NOT NULL, added_at TEXT NOT NULL
);
"""

MAIN = "4915112345678@s.whatsapp.net"
FAMILY = "120363041234567890@g.us"
WEB = "web:notes"  # a chat whose channel is here
ADDED = "2026-01-10T08:00:00.000Z"


@dataclass(frozen=True, slots=True)
class Source:
    """One NanoClaw; `config` is the owner's folder with the allow-lists."""

    path: Path
    config: Path

    @property
    def database(self) -> Path:
        return self.path / "store" / "messages.db"

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("import", "nanoclaw", str(self.path), "--config", str(self.config))

    def run(self, statement: str, *values: object) -> None:
        with contextlib.closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute(statement, values)

    def root_of(self, table: str) -> tuple[int, int]:
        """The number of the page that a table begins on, and the size of a page."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            asked = "SELECT rootpage FROM sqlite_master WHERE name = ?"
            [page] = connection.execute(asked, (table,)).fetchone()
            [size] = connection.execute("PRAGMA page_size").fetchone()
        return page, size

    def chat(self, jid: str, name: str | None = None, **more: object) -> None:
        self.insert("chats", jid=jid, name=name, **more)

    def group(self, jid: str, folder: str | None, **more: object) -> None:
        row: dict[str, object] = {
            "jid": jid,
            "name": (folder or "").title(),
            "folder": folder,
            "trigger_pattern": "@Andy",
            "added_at": ADDED,
        }
        self.insert("registered_groups", **(row | more))

    def say(self, jid: str, id: str | None, text: str | bytes, at: str, **more: Any) -> None:
        row = {
            "id": id,
            "chat_jid": jid,
            "sender": "4915100000000@s.whatsapp.net",
            "sender_name": "Bea",
            "content": text,
            "timestamp": at,
            "is_from_me": 0,
        }
        self.insert("messages", **(row | more))

    def task(self, id: str, folder: str, jid: str, kind: str, value: str, **more: object) -> None:
        row: dict[str, object] = {
            "id": id,
            "group_folder": folder,
            "chat_jid": jid,
            "prompt": "Say good morning.",
            "schedule_type": kind,
            "schedule_value": value,
            "status": "active",
            "created_at": ADDED,
        }
        self.insert("scheduled_tasks", **(row | more))

    def ran(self, task: str, at: str | None, error: str | None = None) -> None:
        status = "success" if error is None else "error"
        self.insert(
            "task_run_logs", task_id=task, run_at=at, duration_ms=5200, status=status, error=error
        )

    def insert(self, table: str, **row: object) -> None:
        places = ", ".join("?" * len(row))
        self.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())

    def write(self, name: str, words: str = "words\n", mode: int = 0o644) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words, encoding="utf-8")
        path.chmod(mode)
        os.utime(path, (1_760_000_000, 1_760_000_000))
        return path

    def allow(self, name: str, document: object) -> None:
        self.config.mkdir(parents=True, exist_ok=True)
        (self.config / name).write_text(json.dumps(document))


def empty(folder: Path, schema: str = SCHEMA) -> Source:
    source = Source(folder / "nanoclaw", folder / "config")
    source.database.parent.mkdir(parents=True)
    source.config.mkdir()
    with contextlib.closing(sqlite3.connect(source.database)) as connection:
        connection.executescript(schema)
    return source


def lived_in(folder: Path) -> Source:
    """Some months of use: a main chat, a family group, a chat of our own kind, and no mess."""
    source = empty(folder)
    source.chat(MAIN, "Me", last_message_time="2026-02-01T09:00:03.000Z", channel="whatsapp")
    source.chat(FAMILY, "Family 👪", last_message_time="2026-02-01T10:00:00.000Z", is_group=1)
    source.chat("120363049999999999@g.us", "Never registered", is_group=1)
    source.chat(WEB, "Notes")
    source.chat("__group_sync__", last_message_time="2026-02-01T00:00:00.000Z")
    source.group(MAIN, "main")
    source.group(FAMILY, "family-chat", name="Family 👪", requires_trigger=1)
    source.group(WEB, "notes", requires_trigger=0)
    source.say(MAIN, "3EB0A1", "hello", "2026-02-01T09:00:00.000Z", is_from_me=1)
    # Two in the same second: NanoClaw's own order is that of storing.
    source.say(MAIN, "3EB0ZZ", "first of the second", "2026-02-01T09:00:01.000Z")
    source.say(MAIN, "3EB0AA", "second of the second", "2026-02-01T09:00:01.000Z")
    source.say(
        MAIN, "3EB0B1", "Andy: hi there", "2026-02-01T09:00:03.000Z", is_from_me=1, is_bot_message=1
    )
    for number in range(5):
        at = f"2026-02-01T10:00:0{number}.000Z"
        source.say(FAMILY, f"F{number}", f"chatter {number}", at)
    source.say(FAMILY, "F9", "@Andy are you there?", "2026-02-01T11:00:00.000Z")
    source.say(WEB, "N1", "remember the milk", "2026-02-01T12:00:00.000Z")
    source.insert("router_state", key="last_timestamp", value="2026-02-01T12:00:00.000Z")
    cursors = {MAIN: "2026-02-01T09:00:01.000Z", FAMILY: "2026-02-01T10:00:04.000Z"}
    source.insert("router_state", key="last_agent_timestamp", value=json.dumps(cursors))
    source.task(
        *("task-1767000000000-abc123", "family-chat", FAMILY, "cron", "0 9 * * 1-5"),
        context_mode="group",
        last_run="2026-01-30T09:00:05.200Z",
    )
    source.task("task-2", "main", MAIN, "interval", "3600000", next_run="2026-01-30T09:10:00.000Z")
    source.task("task-3", "main", MAIN, "once", "2026-01-20T18:00:00", status="completed")
    source.task("task-4", "notes", WEB, "cron", "*/5 * * * *", status="paused")
    source.ran("task-1767000000000-abc123", "2026-01-29T09:00:05.200Z")
    source.ran("task-1767000000000-abc123", "2026-01-30T09:00:05.200Z", "the model was away")
    source.insert("sessions", group_folder="main", session_id="0f0e-main-session")
    source.insert("sessions", group_folder="family-chat", session_id="lost-session")
    source.write(".env", "ASSISTANT_NAME='Andy'\nANTHROPIC_API_KEY=sk-secret\nTZ=Europe/Berlin\n")
    source.write("groups/main/CLAUDE.md", "I am main.\n")
    source.write("groups/global/CLAUDE.md", "For all.\n")
    source.write("groups/family-chat/CLAUDE.md", "Bea likes tea.\n")
    source.write("groups/family-chat/conversations/2026-01-29-tea.md", "# Tea\n")
    source.write("groups/family-chat/tools/run.sh", "#!/bin/sh\n", mode=0o755)
    source.write("groups/left-long-ago/CLAUDE.md", "?\n")
    transcript = "projects/-workspace-group/0f0e-main-session.jsonl"
    source.write(f"data/sessions/main/.claude/{transcript}", "{}\n")
    source.write("data/ipc/main/messages/1-x.json", "{}")
    source.write("store/auth/creds.json", "{}")
    return source


def picture(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every file below, with its mode, time and sum: equal pictures are equal folders."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith("-shm")  # the memory of those who read a database
    }


def kept(home: Path) -> dict[str, tuple[int, int, str]]:
    """A home without what every command leaves: who held it last."""
    return {name: one for name, one in picture(home).items() if not name.startswith("run")}
