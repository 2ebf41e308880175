"""A home with something of everything, and how it is backed up and put back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.chat import ChatSeen
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Kind, Message
from hallporter.stores.backup import Source, write_backup
from hallporter.stores.manifest import Manifest
from hallporter.stores.restore import Aside, put_in_place
from hallporter.stores.sqlite import open_store
from tests.fakes.clock import START, FakeClock
from tests.fakes.ids import counting_id

if TYPE_CHECKING:
    from hallporter.books import Tx

CHAT = ChatId("web:main")
LOAD = 60  # messages before, and as many while the backup is written
LARGE = 9 << 20  # bytes: more than the copy takes in one step


def quiet(_done: int, _total: int) -> None:
    """Nobody watches."""


def say(tx: Tx, text: str = "words " * 200) -> None:
    seq = tx.chats.raise_head(CHAT)
    name = counting_id("m")
    tx.messages.add(
        Message(
            id=MessageId(name),
            chat=CHAT,
            seq=seq,
            ext_id=name,
            sender="Ada",
            sender_name="Ada",
            text=text,
            at=START,
            kind=Kind.REPLY,
        )
    )


async def make_home(home: Path) -> Source:
    files = {
        "hallporter.toml": '[host]\nassistant_name = "Bea"\n',
        ".env": "KEY=secret\n",
        "groups/main/CLAUDE.md": "remember the milk",
        "groups/main/bin/tool": "#!/bin/sh\n",
        "groups/global/CLAUDE.md": "for all",
        "data/sessions/main/.claude/s.jsonl": "{}\n" * 1000,
        "data/media/main/f_1": "sent along",
        "policy/permissions.json": "{}",
        "data/ipc/main/input/1.json": "not kept: it is on its way",
        "run/admin-token": "not kept: each home has its own",
        "logs/hallporter.log": "not kept: what happened stays where it happened",
    }
    for name, words in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    (home / "groups/main/bin/tool").chmod(0o755)
    (home / "groups/main/link").symlink_to("CLAUDE.md")
    (home / ".env").chmod(0o600)
    async with open_store(home / "hallporter.db", FakeClock()) as store:
        await store.write(lambda tx: tx.chats.seen(ChatSeen(chat=CHAT, channel="web", at=START)))
        for _ in range(LOAD):
            await store.write(say)
    return Source(home=home, database=home / "hallporter.db")


def back_up(source: Source, file: Path, report: Callable[[int, int], None] = quiet) -> Manifest:
    return write_backup(file, source, version="9.9.9", made_at="then", report=report)


def placed(into: Path, source: Source, database: Path | None = None) -> Aside:
    return put_in_place(
        into,
        source.home,
        database=database or source.database,
        stamp="now",
        journal=into.with_suffix(".json"),
    )


def tree(home: Path) -> dict[str, bytes]:
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
