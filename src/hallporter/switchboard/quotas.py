"""What the tasks of one group may take: so many, so many words, and so often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.errors import ConflictError
from hallporter.domain.schedule import per_minute
from hallporter.domain.task import Status

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.task import Task

MAX_TASKS = 1000
MAX_WORDS = 1 << 18  # characters of all prompts together: at most 1 MiB
MAX_PACE = 600  # ticks a minute of all intervals together


def make_room(tx: Tx, task: Task) -> None:
    """For a task as it will be. Completed ones make way, oldest first: reminders of years must not
    fill a folder. Raises `ConflictError`."""
    burden = tx.tasks.burden(task.folder, but=task.id)
    tasks, words = burden.tasks + 1, burden.words + len(task.prompt)
    if tasks <= MAX_TASKS and words <= MAX_WORDS:
        return
    for over in tx.tasks.completed(task.folder, but=task.id):
        tx.tasks.remove(over.id)
        tasks, words = tasks - 1, words - over.words
        if tasks <= MAX_TASKS and words <= MAX_WORDS:
            return
    what = f"{MAX_TASKS} tasks" if tasks > MAX_TASKS else f"prompts of {burden.words:,} characters"
    most = "" if tasks > MAX_TASKS else f" ({MAX_WORDS:,} together)"
    message = (
        f"the group {task.folder!r} has {what}, which is the most a group may have{most}:"
        " cancel some first"
    )
    raise ConflictError(message, field="group", value=task.folder)


def keep_pace(tx: Tx, task: Task) -> None:
    """Raises `ConflictError` when the intervals of its group would come too often."""
    if task.status is not Status.ACTIVE or not (pace := per_minute(task.schedule)):
        return
    total = pace + tx.tasks.burden(task.folder, but=task.id).per_minute
    if total > MAX_PACE:
        message = (
            f"the tasks of the group {task.folder!r} would come {total:,.0f} times a minute, and"
            f" {MAX_PACE} is the most: take a longer interval, or pause others first"
        )
        raise ConflictError(message, field="schedule_value", value=task.schedule.value)
