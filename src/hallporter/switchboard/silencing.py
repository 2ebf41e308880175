"""Nobody works for a group any more: what was open in its chat gets its fate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.message import State
from hallporter.domain.turn import Note, Outcome, What
from hallporter.switchboard.orphans import cut_short, pause_all

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.chat import Chat
    from hallporter.domain.group import Group
    from hallporter.domain.turn import Turn

_REMOVED = "the group was removed"


def silence(tx: Tx, group: Group, now: datetime) -> None:
    """A turn that runs is stopped: whoever still works writes under an epoch that no longer
    counts."""
    chat = tx.chats.lock(group.chat)
    if (turn := tx.turns.open_in(chat.id)) is not None:
        _stop(tx, chat, turn, now)
    tx.messages.ignore(chat.id, _REMOVED)
    pause_all(tx, group.folder, _REMOVED)
    tx.chats.save(replace(chat.settled(chat.head), epoch=chat.epoch + 1, woken_at=None))


def _stop(tx: Tx, chat: Chat, turn: Turn, now: datetime) -> None:
    tx.messages.mark(
        chat.id,
        after=chat.cursor,
        through=turn.piped,
        was=(State.RUNNING,),
        state=State.STOPPED,
        turn=turn.id,
    )
    tx.turns.save(replace(turn, outcome=Outcome.STOPPED, ended_at=now, why=_REMOVED))
    tx.turns.note(
        Note(
            turn=turn.id,
            at=now,
            what=What.ENDED,
            after=chat.cursor,
            through=turn.piped,
            why=_REMOVED,
        )
    )
    cut_short(tx, turn, _REMOVED, now)
