"""Tasks of another system become ours: the same ids, and next times by our rules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.ids import TaskId
from hallporter.domain.import_report import Noun
from hallporter.domain.schedule import Schedule, Type, next_due, parse_schedule
from hallporter.domain.task import (
    ContextMode,
    Misfire,
    Status,
    Task,
    Tick,
    TickState,
    parse_prompt,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hallporter.books import Tx
    from hallporter.domain.foreign import ForeignRun, ForeignTask
    from hallporter.domain.group import Group
    from hallporter.domain.import_report import Ledger

_ODD = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 64  # characters
_OVER = (
    "its time had passed when it was imported: it is carried over as completed and will not run;"
    " `hallporter tasks run ID` makes up for it"
)


class ImportedTasks:
    """Decides what each task becomes, over all batches of one import; `tasks` are by their ids
    there, those that came and those that were here."""

    def __init__(self, groups: Mapping[str, Group], *, timezone: str, ledger: Ledger) -> None:
        self._groups = groups
        self._timezone = timezone
        self._ledger = ledger
        self._seen: set[str] = set()
        self._ids: set[TaskId] = set()
        self.tasks: dict[str, Task] = {}

    def decide(self, tx: Tx, batch: Sequence[ForeignTask], now: datetime) -> Sequence[Task]:
        """Those that come now; reads only."""
        added = []
        for foreign in batch:
            group = self._groups.get(foreign.folder)
            if foreign.id in self._seen:
                why = "its id is there twice, and the first one counts"
                self._ledger.skipped(Noun.TASKS, foreign.id, why)
            elif group is None:
                why = f"no group with the folder {foreign.folder[:80]!r} was imported"
                self._ledger.skipped(Noun.TASKS, foreign.id, why)
            elif (task := self._decide_one(tx, foreign, group, now)) is not None:
                added.append(task)
            self._seen.add(foreign.id)
        return added

    def _decide_one(self, tx: Tx, foreign: ForeignTask, group: Group, now: datetime) -> Task | None:
        """None when it is here, or cannot be."""
        for id_ in _ids(foreign):
            there = tx.tasks.get(id_)
            if id_ in self._ids or (there is not None and there.folder != group.folder):
                continue  # another one's
            if there is None:
                task = _decided(
                    foreign, id_, group, timezone=self._timezone, now=now, ledger=self._ledger
                )
            else:
                task = there
                self._ledger.there(Noun.TASKS)
            if task is not None:
                self._ids.add(id_)
                self.tasks[foreign.id] = task
            return task if there is None else None
        self._ledger.skipped(Noun.TASKS, foreign.id, "all ids that it could have are taken")
        return None


def _ids(foreign: ForeignTask) -> Iterator[TaskId]:
    """Its own wherever it can be one of ours; else one that is made of it, always the same."""
    stem = _ODD.sub("-", foreign.id)
    if stem == foreign.id and len(stem) <= _LONGEST_ID:
        yield TaskId(stem)
    mark = sha256(f"{foreign.folder}/{foreign.id}".encode()).hexdigest()
    for length in (8, 32):
        yield TaskId(f"{stem[: _LONGEST_ID - length - 1]}-{mark[:length]}")


def _decided(
    foreign: ForeignTask,
    id_: TaskId,
    group: Group,
    *,
    timezone: str,
    now: datetime,
    ledger: Ledger,
) -> Task | None:
    """What a task becomes here; None is told to the ledger."""
    try:
        schedule = _schedule(foreign, timezone, now)
        prompt = parse_prompt(foreign.prompt)
    except InvalidRequestError as error:
        ledger.skipped(Noun.TASKS, foreign.id, error.message)
        return None
    if id_ != foreign.id:
        ledger.mended(
            Noun.TASKS, foreign.id, f"its id does not fit here, or is taken: it has {id_!r}"
        )
    if foreign.chat != group.chat:
        what = f"it was for another chat: it is for its group's, {group.chat}"
        ledger.mended(Noun.TASKS, foreign.id, what)
    if schedule.value != " ".join(foreign.schedule_value.split()):
        what = f"its time had a zone in it: it is {schedule.value} in {schedule.timezone} now"
        ledger.mended(Noun.TASKS, foreign.id, what)
    anchor = foreign.next_at or foreign.created_at or now
    status = _status(foreign, ledger)
    following = next_due(schedule, anchor=anchor, after=now)
    if status is Status.ACTIVE and following is None:
        ledger.mended(Noun.TASKS, foreign.id, _OVER)
        status = Status.COMPLETED
    is_group = foreign.context_mode == ContextMode.GROUP
    return Task(
        id=id_,
        folder=group.folder,
        chat=group.chat,
        prompt=prompt,
        schedule=schedule,
        # NanoClaw's host takes anything else for it.
        context_mode=ContextMode.GROUP if is_group else ContextMode.ISOLATED,
        misfire=Misfire.ONCE,
        status=status,
        anchor=anchor,
        next_at=following if status is Status.ACTIVE else None,
        created_at=foreign.created_at or now,
        created_by=group.folder,
        last_at=foreign.last_at,
    )


def tick_of(run: ForeignRun, task: Task, system: str) -> Tick:
    """NanoClaw noted when a run ended, not when it was due."""
    took = "" if run.took is None else f", took {run.took.total_seconds():.1f} s"
    return Tick(
        task=task.id,
        due=run.at,
        chat=task.chat,
        state=TickState.RAN if run.is_ok else TickState.FAILED,
        why=run.error or f"imported from {system}{took}",
        ended_at=run.at,
        attempts=1,
    )


def _status(foreign: ForeignTask, ledger: Ledger) -> Status:
    try:
        return Status(foreign.status)
    except ValueError:
        what = f"its status {foreign.status[:40]!r} means nothing here: it is paused"
        ledger.mended(Noun.TASKS, foreign.id, what)
        return Status.PAUSED


def _schedule(foreign: ForeignTask, timezone: str, now: datetime) -> Schedule:
    """A single time may be long past, and may have a zone in it."""
    value = foreign.schedule_value
    if foreign.schedule_type != Type.ONCE:
        return parse_schedule(foreign.schedule_type, value, timezone, now)
    zone = ZoneInfo(timezone)
    try:
        at = datetime.fromisoformat(value.strip())
        local = at if at.tzinfo is None else at.astimezone(zone).replace(tzinfo=None)
        before = local.replace(tzinfo=zone).astimezone(UTC) - timedelta(days=1)
    except (ValueError, OverflowError):
        message = f"{value[:80]!r} is no time"
        raise InvalidRequestError(message, field="schedule_value") from None
    said = value if at.tzinfo is None else local.isoformat()
    return parse_schedule(foreign.schedule_type, said, timezone, before)
