"""Turns and their notes in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.ids import ChatId, TaskId, TurnId
from hallporter.domain.turn import Note, Outcome, Turn, What
from hallporter.stores.columns import maybe_time_out, time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hallporter.domain.task import Tick
    from hallporter.stores.queries import Row, Run


class SqlTurns:
    """`books.Turns` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, turn: Turn) -> None:
        self._run(
            "turn_add",
            chat=turn.chat,
            epoch=turn.epoch,
            attempt=turn.attempt,
            session_no=turn.session_no,
            waiting_since=time_in(turn.waiting_since),
            started_at=time_in(turn.started_at),
            cursor=turn.cursor,
            task=turn.task,
            due=time_in(turn.due),
            **_changing(turn),
        )

    def get(self, turn: TurnId) -> Turn | None:
        rows = self._run("turn_get", id=turn)
        return _turn(rows[0]) if rows else None

    def save(self, turn: Turn) -> None:
        self._run("turn_save", **_changing(turn))

    def note(self, note: Note) -> None:
        self._run(
            "turn_note",
            turn=note.turn,
            at=time_in(note.at),
            what=str(note.what),
            after=note.after,
            through=note.through,
            why=note.why,
        )

    def open_in(self, chat: ChatId) -> Turn | None:
        rows = self._run("turn_open_in", chat=chat)
        return _turn(rows[0]) if rows else None

    def unfinished(self) -> Sequence[Turn]:
        return [_turn(row) for row in self._run("turn_unfinished")]

    def given(self, chat: ChatId, seq: int) -> Sequence[Turn]:
        return [_turn(row) for row in self._run("turn_given", chat=chat, seq=seq)]

    def last_in(self, chat: ChatId) -> Turn | None:
        rows = self._run("turn_last_in", chat=chat)
        return _turn(rows[0]) if rows else None

    def of_tick(self, chat: ChatId, tick: Tick) -> Sequence[Turn]:
        rows = self._run("turn_of_tick", chat=chat, task=tick.task, due=time_in(tick.due))
        return [_turn(row) for row in rows]

    def notes(self, turns: Sequence[TurnId]) -> Sequence[Note]:
        return [_note(row) for turn in turns for row in self._run("turn_notes", turn=turn)]

    def failures(self, since: datetime) -> Sequence[Turn]:
        return [_turn(row) for row in self._run("turn_failures", since=time_in(since))]


def _changing(turn: Turn) -> dict[str, object]:
    return {
        "id": turn.id,
        "piped": turn.piped,
        "ended_at": time_in(turn.ended_at),
        "outcome": None if turn.outcome is None else str(turn.outcome),
        "why": turn.why,
    }


def _turn(row: Row) -> Turn:
    return Turn(
        id=TurnId(row["id"]),
        chat=ChatId(row["chat"]),
        epoch=row["epoch"],
        attempt=row["attempt"],
        session_no=row["session_no"],
        waiting_since=time_out(row["waiting_since"]),
        started_at=time_out(row["started_at"]),
        cursor=row["cursor"],
        piped=row["piped"],
        ended_at=maybe_time_out(row["ended_at"]),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        why=row["why"],
        task=None if row["task"] is None else TaskId(row["task"]),
        due=maybe_time_out(row["due"]),
    )


def _note(row: Row) -> Note:
    return Note(
        turn=TurnId(row["turn"]),
        at=time_out(row["at"]),
        what=What(row["what"]),
        after=row["after"],
        through=row["through"],
        why=row["why"],
    )
