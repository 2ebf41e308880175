"""What a group may know, written into its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from hallporter.domain.brief import Snapshots
from hallporter.mailroom.translation import to_group_entry, to_task_entry
from hallporter.placing import replace_file
from hallporter_wire.snapshots import AVAILABLE_GROUPS, CURRENT_TASKS, encode_groups, encode_tasks

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.mailroom.folders import Folders
    from hallporter.switchboard.snapshots import Sight

log = structlog.get_logger(__name__)


def write(folders: Folders, sight: Sight, now: datetime) -> Snapshots:
    """An agent that has spoilt its folder finds nothing there, and is told all the same."""
    tasks = encode_tasks([to_task_entry(task) for task in sight.tasks])
    groups = encode_groups([to_group_entry(chat) for chat in sight.chats], last_sync=now)
    folder = sight.group.folder
    try:
        folders.prepare(folder)
        with folders.opened(folder) as place:
            replace_file(place, CURRENT_TASKS, tasks)
            replace_file(place, AVAILABLE_GROUPS, groups)
    except OSError as error:
        log.warning("snapshot.not_written", folder=folder, error=str(error))
    return Snapshots(tasks=tasks.decode(), groups=groups.decode())
