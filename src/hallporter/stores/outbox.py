"""The outbox in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.outbox import Delivery, Outgoing, Part
from hallporter.stores.columns import files_in, files_out, time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hallporter.stores.queries import Row, Run


class SqlOutbox:
    """`books.Outbox` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def put(self, row: Outgoing) -> bool:
        numbers = self._run(
            "outbox_put",
            key=row.key,
            chat=row.chat,
            message=row.message,
            at=time_in(row.at),
            state=str(row.state),
            why=row.why,
        )
        if not numbers:
            return False
        for position, part in enumerate(row.parts):
            self._run(
                "outbox_put_part",
                outbox=numbers[0]["number"],
                position=position,
                message_id=part.message_id,
                body=part.body,
                files=files_in(part.files),
                state=str(part.state),
                attempts=part.attempts,
            )
        return True

    def has(self, key: str) -> bool:
        return bool(self._run("outbox_has", key=key))

    def pending(self, chat: ChatId, limit: int) -> Sequence[Outgoing]:
        return [self._outgoing(row) for row in self._run("outbox_pending", chat=chat, limit=limit)]

    def chats_with_pending(self) -> Sequence[ChatId]:
        return [ChatId(row["chat"]) for row in self._run("outbox_chats")]

    def save_part(self, number: int, index: int, part: Part) -> None:
        self._run(
            "outbox_save_part",
            outbox=number,
            position=index,
            state=str(part.state),
            attempts=part.attempts,
        )

    def finish(self, number: int, state: Delivery, why: str) -> None:
        self._run("outbox_finish", number=number, state=str(state), why=why)

    def of_messages(self, messages: Sequence[MessageId]) -> Sequence[Outgoing]:
        return [
            self._outgoing(row)
            for message in messages
            for row in self._run("outbox_of_message", message=message)
        ]

    def said_as(self, chat: ChatId, message_id: str) -> MessageId | None:
        rows = self._run("outbox_said_as", chat=chat, message_id=message_id)
        return MessageId(rows[0]["message"]) if rows else None

    def counts(self) -> Mapping[str, int]:
        return {row["state"]: row["count"] for row in self._run("outbox_counts")}

    def _outgoing(self, row: Row) -> Outgoing:
        parts = self._run("outbox_parts", outbox=row["number"])
        return Outgoing(
            number=row["number"],
            key=row["key"],
            chat=ChatId(row["chat"]),
            message=MessageId(row["message"]),
            at=time_out(row["at"]),
            parts=tuple(
                Part(
                    body=part["body"],
                    message_id=part["message_id"],
                    files=files_out(part["files"]),
                    state=Delivery(part["state"]),
                    attempts=part["attempts"],
                )
                for part in parts
            ),
            state=Delivery(row["state"]),
            why=row["why"],
        )
