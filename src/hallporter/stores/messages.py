"""The transcript in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.backlog import Waiting
from hallporter.domain.enclosure import mentioning
from hallporter.domain.ids import ChatId, MessageId, TurnId
from hallporter.domain.message import OPEN_STATES, Kind, Message, State
from hallporter.domain.portion import PAGE_SIZE, fitting
from hallporter.stores.columns import files_in, files_out, time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from hallporter.domain.enclosure import Enclosure
    from hallporter.stores.queries import Row, Run

_SENT_ALONG = "(with the file {})"


class SqlMessages:
    """`books.Messages` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, message: Message) -> None:
        self._run(
            "message_add",
            chat=message.chat,
            seq=message.seq,
            id=message.id,
            ext_id=message.ext_id,
            sender=message.sender,
            sender_name=message.sender_name,
            text=message.text,
            at=time_in(message.at),
            kind=str(message.kind),
            wakes=int(message.wakes),
            why=message.why,
            state=None if message.state is None else str(message.state),
            turn=message.turn,
            covers_after=message.covers_after,
            covers_through=message.covers_through,
            files=files_in(message.files),
        )

    def get(self, message: MessageId) -> Message | None:
        rows = self._run("message_get", id=message)
        return _message(rows[0]) if rows else None

    def find(self, name: str) -> Sequence[Message]:
        return [_message(row) for row in self._run("message_find", name=name)]

    def repeat_of(self, chat: ChatId, sender: str, ext_id: str) -> Message | None:
        rows = self._run("message_repeat_of", chat=chat, sender=sender, ext_id=ext_id)
        return _message(rows[0]) if rows else None

    def waiting(self, chat: ChatId, after: int) -> Sequence[Waiting]:
        return [
            Waiting(seq=row["seq"], size=row["size"], wakes=bool(row["wakes"]))
            for row in self._run("message_waiting", chat=chat, after=after)
        ]

    def backlog(self, chat: ChatId, after: int) -> Sequence[Message]:
        return [_message(row) for row in self._run("message_backlog", chat=chat, after=after)]

    def first_waking(self, chat: ChatId, after: int) -> Message | None:
        rows = self._run("message_first_waking", chat=chat, after=after)
        return _message(rows[0]) if rows else None

    def page(self, chat: ChatId, after: int, limit: int) -> Sequence[Message]:
        sizes = self._run("message_sizes", chat=chat, after=after, limit=limit)
        if not sizes:
            return []
        through = sizes[fitting([row["size"] for row in sizes], PAGE_SIZE) - 1]["seq"]
        rows = self._run("message_page", chat=chat, after=after, through=through)
        return [_message(row) for row in rows]

    def between(self, chat: ChatId, after: int, through: int) -> Sequence[MessageId]:
        rows = self._run("message_between", chat=chat, after=after, through=through)
        return [MessageId(row["id"]) for row in rows]

    def before(self, chat: ChatId, seq: int, limit: int) -> Sequence[Message]:
        rows = self._run("message_before", chat=chat, before=seq, limit=limit)
        return [_message(row) for row in reversed(rows)]

    def mark(
        self,
        chat: ChatId,
        *,
        after: int,
        through: int,
        was: Sequence[State],
        state: State,
        turn: TurnId | None,
    ) -> Sequence[MessageId]:
        # The statement has a fixed number of places, so a shorter list repeats its last state.
        padded = [*was, *[was[-1]] * (len(OPEN_STATES) - len(was))]
        rows = self._run(
            "message_mark",
            chat=chat,
            after=after,
            through=through,
            state=str(state),
            turn=turn,
            **{f"was{place}": str(value) for place, value in enumerate(padded)},
        )
        return [MessageId(row["id"]) for row in rows]

    def ignore(self, chat: ChatId, why: str) -> None:
        self._run("message_ignore", chat=chat, why=why)

    def replies(self, chat: ChatId, seq: int) -> Sequence[Message]:
        return [_message(row) for row in self._run("message_replies", chat=chat, seq=seq)]

    def sent(self, chat: ChatId, after: int, since: datetime) -> Sequence[str]:
        rows = self._run("message_sent", chat=chat, after=after, since=time_in(since))
        return [mentioning(row["text"], files_out(row["files"]), _SENT_ALONG) for row in rows]

    def files(self, chat: ChatId | None = None) -> Sequence[Enclosure]:
        if chat is None:
            rows = self._run("message_files")
        else:
            rows = self._run("message_files_in", chat=chat)
        return [file for row in rows for file in files_out(row["files"])]

    def counts(self) -> Mapping[str, int]:
        return {row["state"]: row["count"] for row in self._run("message_counts")}


def _message(row: Row) -> Message:
    return Message(
        id=MessageId(row["id"]),
        chat=ChatId(row["chat"]),
        seq=row["seq"],
        ext_id=row["ext_id"],
        sender=row["sender"],
        sender_name=row["sender_name"],
        text=row["text"],
        at=time_out(row["at"]),
        kind=Kind(row["kind"]),
        wakes=bool(row["wakes"]),
        why=row["why"],
        state=None if row["state"] is None else State(row["state"]),
        turn=None if row["turn"] is None else TurnId(row["turn"]),
        covers_after=row["covers_after"],
        covers_through=row["covers_through"],
        files=files_out(row["files"]),
    )
