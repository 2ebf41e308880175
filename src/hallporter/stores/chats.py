"""Chats in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.chat import Chat, ChatSeen
from hallporter.domain.errors import FencedError, NotFoundError
from hallporter.domain.ids import ChatId, Pool
from hallporter.stores.columns import maybe_time_out, time_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.stores.queries import Row, Run


class SqlChats:
    """`books.Chats` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def seen(self, what: ChatSeen) -> None:
        self._run(
            "chat_seen",
            id=what.chat,
            channel=what.channel,
            account=what.account,
            name=what.name,
            is_group=None if what.is_group is None else int(what.is_group),
            seen_at=time_in(what.at),
        )

    def get(self, chat: ChatId) -> Chat | None:
        rows = self._run("chat_get", id=chat)
        return _chat(rows[0]) if rows else None

    def all(self) -> Sequence[Chat]:
        return [_chat(row) for row in self._run("chat_all")]

    def raise_head(self, chat: ChatId) -> int:
        rows = self._run("chat_raise_head", id=chat)
        if not rows:
            raise NotFoundError(f"no chat {chat!r}", chat=chat)
        return int(rows[0]["head"])

    def lock(self, chat: ChatId) -> Chat:
        rows = self._run("chat_lock", id=chat)
        if not rows:
            raise NotFoundError(f"no chat {chat!r}", chat=chat)
        return _chat(rows[0])

    def hold(self, chat: ChatId, epoch: int) -> Chat:
        rows = self._run("chat_hold", id=chat, epoch=epoch)
        if not rows:
            raise FencedError("another claim holds the chat", chat=chat, epoch=epoch)
        return _chat(rows[0])

    def save(self, chat: Chat) -> None:
        self._run(
            "chat_save",
            id=chat.id,
            pool=chat.pool,
            cursor=chat.cursor,
            epoch=chat.epoch,
            session_no=chat.session_no,
            session_id=chat.session_id,
            woken_at=time_in(chat.woken_at),
            not_before=time_in(chat.not_before),
            due_at=time_in(chat.due_at),
            attempts=chat.attempts,
            is_parked=int(chat.is_parked),
            interruptions=chat.interruptions,
        )

    def woken(self) -> Sequence[Chat]:
        return [_chat(row) for row in self._run("chat_woken")]

    def forgotten(self) -> Sequence[ChatId]:
        return [ChatId(row["chat"]) for row in self._run("chat_forgotten")]

    def unheard(self) -> Sequence[ChatId]:
        return [ChatId(row["chat"]) for row in self._run("chat_unheard")]


def _chat(row: Row) -> Chat:
    return Chat(
        id=ChatId(row["id"]),
        channel=row["channel"],
        account=row["account"],
        name=row["name"],
        is_group=bool(row["is_group"]),
        seen_at=maybe_time_out(row["seen_at"]),
        pool=Pool(row["pool"]),
        head=row["head"],
        cursor=row["cursor"],
        epoch=row["epoch"],
        session_no=row["session_no"],
        session_id=row["session_id"],
        woken_at=maybe_time_out(row["woken_at"]),
        not_before=maybe_time_out(row["not_before"]),
        due_at=maybe_time_out(row["due_at"]),
        attempts=row["attempts"],
        is_parked=bool(row["is_parked"]),
        interruptions=row["interruptions"],
    )
