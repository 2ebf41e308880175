"""The record of a turn: its beginning, its notes and its end, and the news of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.happening import TurnChanged
from hallporter.domain.turn import Note, Outcome, Turn, What

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.ids import MessageId
    from hallporter.ports import Clock, Feed


class Record:
    """Writes what everyone who begins or ends a turn has to write of it."""

    def __init__(self, *, feed: Feed, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock

    def begin(self, tx: Tx, turn: Turn, *, after: int, covers: tuple[MessageId, ...] = ()) -> None:
        """The agent is given what lies in (after, piped]."""
        tx.turns.add(turn)
        self.note(tx, turn, What.GIVEN, after=after, through=turn.piped)
        news = TurnChanged(
            chat=turn.chat,
            turn=turn.id,
            state="started",
            covers=covers,
            waited=turn.started_at - turn.waiting_since,
        )
        tx.after_commit(lambda: self._feed.publish(news))

    def note(
        self, tx: Tx, turn: Turn, what: What, *, after: int, through: int, why: str = ""
    ) -> None:
        at = self._clock.now()
        tx.turns.note(Note(turn=turn.id, at=at, what=what, after=after, through=through, why=why))

    def close(self, tx: Tx, turn: Turn, outcome: Outcome, why: str, *, cursor: int) -> None:
        """Over; what lies in (cursor, piped] was given and is not covered."""
        tx.turns.save(replace(turn, ended_at=self._clock.now(), outcome=outcome, why=why))
        self.note(tx, turn, What.ENDED, after=cursor, through=turn.piped, why=why)

    def publish(
        self, tx: Tx, turn: Turn, outcome: Outcome, covers: tuple[MessageId, ...] = ()
    ) -> None:
        """The news of an end; `covers` are the messages that it was the end of."""
        took = self._clock.now() - turn.started_at
        news = TurnChanged(
            chat=turn.chat, turn=turn.id, state=str(outcome), covers=covers, took=took
        )
        tx.after_commit(lambda: self._feed.publish(news))
