from __future__ import annotations

from datetime import UTC, datetime

from hallporter_wire.snapshots import GroupEntry, TaskEntry, encode_groups, encode_tasks
from tests.wire.golden_files import assert_fits, golden

NOW = datetime(2026, 2, 19, 12, tzinfo=UTC)
TASK = TaskEntry(
    id="task-1",
    folder="family",
    chat="120363@g.us",
    prompt="Water the plants.",
    schedule_type="cron",
    schedule_value="0 9 * * *",
    context_mode="group",
    timezone="Europe/Berlin",
    misfire="once",
    status="active",
    next_run=datetime(2026, 2, 20, 8, tzinfo=UTC),
    last_run=None,
)
FAMILY = GroupEntry(
    chat="120363@g.us",
    name="Family",
    channel="whatsapp",
    is_group=True,
    last_activity=datetime(2026, 2, 19, 10, tzinfo=UTC),
    folder="family",
)
CLUB = GroupEntry(
    chat="120364@g.us",
    name="Club",
    channel="whatsapp",
    is_group=True,
    last_activity=None,
    folder=None,
)


def test_tasks_have_the_keys_of_both_dialects() -> None:
    assert encode_tasks([TASK]) + b"\n" == golden("current-tasks.json")
    assert_fits(encode_tasks([TASK]), "current-tasks")
    assert encode_tasks([]) == b"[]"


def test_groups_say_who_is_registered() -> None:
    written = encode_groups([FAMILY, CLUB], last_sync=NOW)
    assert written + b"\n" == golden("available-groups.json")
    assert_fits(written, "available-groups")
