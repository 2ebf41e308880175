"""What was removed, in the database: taking it out, and how much it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hallporter.domain.ids import ChatId, MessageId, TaskId
from hallporter.domain.removal import Begun, Reason, Removal
from hallporter.stores.columns import time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from hallporter.stores.queries import Row, Run


class SqlRemovals:
    """`books.Removals` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, removal: Removal) -> None:
        self._run(
            "removal_add",
            at=time_in(removal.at),
            reason=str(removal.reason),
            chat=removal.chat,
            counts=json.dumps(dict(removal.counts)),
        )

    def last(self, reason: Reason) -> Removal | None:
        rows = self._run("removal_last", reason=str(reason))
        return _removal(rows[0]) if rows else None

    def forget(self, chat: ChatId) -> Mapping[str, int]:
        self._run("forget_parts", chat=chat)
        outgoing = len(self._run("forget_outbox", chat=chat))
        self._run("forget_notes", chat=chat)
        turns = len(self._run("forget_turns", chat=chat))
        messages = len(self._run("forget_messages", chat=chat))
        self._run("forget_ticks", chat=chat)
        tasks = len(self._run("forget_tasks", chat=chat))
        return {"messages": messages, "turns": turns, "sent_replies": outgoing, "tasks": tasks}

    def old_messages(self, before: datetime, limit: int) -> Sequence[MessageId]:
        rows = self._run("old_messages", before=time_in(before), limit=limit)
        return [MessageId(row["id"]) for row in rows]

    def drop_message(self, message: MessageId) -> bool:
        # A turn may have begun since the message was found.
        if not self._run("droppable", message=message):
            return False
        self._run("drop_parts", message=message)
        self._run("drop_outbox", message=message)
        self._run("drop_message", message=message)
        return True

    def drop_turns(self, before: datetime, limit: int) -> int:
        turns = [row["id"] for row in self._run("old_turns", before=time_in(before), limit=limit)]
        for turn in turns:
            self._run("drop_notes", turn=turn)
            self._run("drop_turn", turn=turn)
        return len(turns)

    def old_ticks(self, before: datetime, limit: int) -> Sequence[tuple[TaskId, datetime]]:
        rows = self._run("old_ticks", before=time_in(before), limit=limit)
        return [(TaskId(row["task"]), time_out(row["due"])) for row in rows]

    def drop_tick(self, task: TaskId, due: datetime) -> None:
        self._run("drop_tick", task=task, due=time_in(due))

    def drop_commands(self, before: datetime, limit: int) -> int:
        return len(self._run("drop_commands", before=time_in(before), limit=limit))

    def begin(self, begun: Begun) -> None:
        self._run(
            "forgetting_begin",
            chat=begun.chat,
            head=begun.head,
            purges=begun.purges,
            counts=json.dumps(dict(begun.counts)),
        )

    def begun(self) -> Sequence[Begun]:
        return [
            Begun(
                chat=ChatId(row["chat"]),
                head=row["head"],
                purges=bool(row["purges"]),
                counts=json.loads(row["counts"]),
            )
            for row in self._run("forgettings_begun")
        ]

    def finished(self, chat: ChatId) -> None:
        self._run("forgetting_finished", chat=chat)

    def owe_scrub(self, at: datetime) -> None:
        self._run("scrub_owe", at=time_in(at))

    def owed_scrub(self) -> int | None:
        number: int | None = self._run("scrub_owed")[0]["number"]
        return number

    def scrubbed(self, number: int) -> None:
        self._run("scrub_done", number=number)


def _removal(row: Row) -> Removal:
    return Removal(
        at=time_out(row["at"]),
        reason=Reason(row["reason"]),
        chat=None if row["chat"] is None else ChatId(row["chat"]),
        counts=json.loads(row["counts"]),
    )
