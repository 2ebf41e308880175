"""What a group may know: main all tasks and chats, everyone else their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.switchboard.discovery import known_chats, own_chat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.books import Tx
    from hallporter.domain.group import Group
    from hallporter.domain.task import Task
    from hallporter.switchboard.discovery import KnownChat


# Characters of another group's prompt: all of a house's would be written anew at each change.
_SHOWN = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All that one group may see, of one moment."""

    group: Group
    tasks: Sequence[Task]
    chats: Sequence[KnownChat]


def sight_of(tx: Tx, folder: str) -> Sight | None:
    """None for a folder that belongs to no group."""
    group = tx.groups.of_folder(folder)
    if group is None or group.folder != folder:
        return None
    if group.is_main:
        others = map(_shortened, tx.tasks.of_others(group.folder, _SHOWN + 1))
        tasks = sorted(
            (*tx.tasks.of_folder(group.folder), *others), key=lambda one: (one.created_at, one.id)
        )
        return Sight(group=group, tasks=tasks, chats=known_chats(tx))
    return Sight(group=group, tasks=tx.tasks.of_folder(group.folder), chats=own_chat(tx, group))


def _shortened(task: Task) -> Task:
    if len(task.prompt) <= _SHOWN:
        return task
    return replace(task, prompt=f"{task.prompt[: _SHOWN - 1]}…")
