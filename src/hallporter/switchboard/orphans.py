"""Tasks whose group goes: they are paused, and what ran for them is over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.task import Status, TickState
from hallporter.switchboard.tasks import paused

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.ids import Folder
    from hallporter.domain.turn import Turn


def pause_all(tx: Tx, folder: Folder, why: str) -> None:
    """Nobody serves the folder any more; what is completed stays so."""
    for task in tx.tasks.of_folder(folder):
        if task.status is Status.COMPLETED:
            tx.tasks.skip_waiting(task.id, why)
        else:
            paused(tx, task, why)


def cut_short(tx: Tx, turn: Turn, why: str, at: datetime) -> None:
    """The tick that a turn served, if it served one, has come to nothing."""
    tick = None if turn.task is None or turn.due is None else tx.tasks.tick(turn.task, turn.due)
    if tick is not None and tick.state is TickState.RUNNING:
        tx.tasks.save_tick(replace(tick, state=TickState.FAILED, why=why, ended_at=at))
