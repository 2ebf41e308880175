"""Standing prompts: made, changed, paused, resumed, run by hand and cancelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import structlog

from hallporter.domain.errors import ConflictError, NotFoundError
from hallporter.domain.ids import TaskId
from hallporter.domain.plan import MAX_WAITING
from hallporter.domain.schedule import next_due, parse_schedule
from hallporter.domain.task import (
    MAX_TICKS,
    ContextMode,
    Misfire,
    Status,
    Task,
    Tick,
    TickState,
    parse_context_mode,
    parse_id,
    parse_misfire,
    parse_prompt,
)
from hallporter.switchboard.quotas import keep_pace, make_room

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.group import Group
    from hallporter.domain.ids import Folder, NewId
    from hallporter.ports import Clock, Engine, Store

log = structlog.get_logger(__name__)

T = TypeVar("T")

BY_HAND = "run by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What is asked for; empty values get the defaults. `folder` is the group that it is for,
    `created_by` the folder that asks, or the operator."""

    folder: str
    prompt: str
    schedule_type: str
    schedule_value: str
    created_by: str
    id: str | None = None
    context_mode: str | None = None
    timezone: str | None = None
    misfire: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChange:
    """Only what is given changes."""

    prompt: str | None = None
    schedule_type: str | None = None
    schedule_value: str | None = None
    context_mode: str | None = None
    timezone: str | None = None
    misfire: str | None = None


class Tasks:
    """The use cases behind `tasks …`, `/api/tasks` and what agents ask for. `poke` tells the
    scheduler that a next time has changed, `changed` whoever shows a folder's tasks."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        clock: Clock,
        new_id: NewId,
        timezone: str,
        poke: Callable[[], None],
        changed: Callable[[Folder], None],
    ) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._timezone = timezone
        self._poke = poke
        self._changed = changed

    # --- from outside of a transaction --------------------------------------------------------

    async def all(self, folder: str | None = None) -> Sequence[Task]:
        """Of one group or of all, oldest first. Raises `NotFoundError` for an unknown group."""

        def fn(tx: Tx) -> Sequence[Task]:
            if folder is None:
                return tx.tasks.all()
            return tx.tasks.of_folder(_group(tx, folder).folder)

        return await self._store.read(fn)

    async def get(self, id: str) -> Task:
        return await self._store.read(lambda tx: known_task(tx, id))

    async def ticks(self, id: str, limit: int, before: datetime | None = None) -> Sequence[Tick]:
        """The newest first; `before` goes on where an earlier answer ended."""

        def fn(tx: Tx) -> Sequence[Tick]:
            return tx.tasks.ticks(known_task(tx, id).id, limit, before)

        return await self._store.read(fn)

    async def add(self, new: NewTask) -> Task:
        return await self._store.write(lambda tx: self.create(tx, new))

    async def update(self, id: str, change: TaskChange) -> Task:
        return await self._store.write(lambda tx: self.change(tx, TaskId(id), change))

    async def act(self, verb: Callable[[Tx, TaskId], T], id: str) -> T:
        """One of the verbs below that need nothing but the id, in a transaction of its own."""
        return await self._store.write(lambda tx: verb(tx, TaskId(id)))

    # --- inside of one ------------------------------------------------------------------------

    def create(self, tx: Tx, new: NewTask) -> Task:
        """Raises `InvalidRequestError`, `NotFoundError` or `ConflictError`."""
        now = self._clock.now()
        group = _group(tx, new.folder)
        timezone = self._timezone if new.timezone is None else new.timezone
        schedule = parse_schedule(new.schedule_type, new.schedule_value, timezone, now)
        task = Task(
            id=self._fresh_id(tx, new.id),
            folder=group.folder,
            chat=group.chat,
            prompt=parse_prompt(new.prompt),
            schedule=schedule,
            context_mode=_given(new.context_mode, parse_context_mode, ContextMode.GROUP),
            misfire=_given(new.misfire, parse_misfire, Misfire.ONCE),
            status=Status.ACTIVE,
            anchor=now,
            next_at=next_due(schedule, anchor=now, after=now),
            created_at=now,
            created_by=new.created_by,
        )
        make_room(tx, task)
        keep_pace(tx, task)
        tx.tasks.add(task)
        self._tell(tx, task, "task.created")
        return task

    def change(self, tx: Tx, id: TaskId, change: TaskChange) -> Task:
        """A new schedule counts from now; a completed task with one is active again."""
        task = known_task(tx, id)
        changed = replace(
            task,
            prompt=_given(change.prompt, parse_prompt, task.prompt),
            context_mode=_given(change.context_mode, parse_context_mode, task.context_mode),
            misfire=_given(change.misfire, parse_misfire, task.misfire),
        )
        if (change.schedule_type, change.schedule_value, change.timezone) != (None, None, None):
            changed = self._rescheduled(changed, change)
            keep_pace(tx, changed)
        if changed.next_at is not None:
            _own_group(tx, changed)
        if len(changed.prompt) > len(task.prompt):
            make_room(tx, changed)
        tx.tasks.save(changed)
        self._tell(tx, changed, "task.changed")
        return changed

    def pause(self, tx: Tx, id: TaskId) -> Task:
        """What waits is skipped; what runs goes on. Pausing it again changes nothing."""
        task = known_task(tx, id)
        if task.status is Status.COMPLETED:
            message = f"the task {id!r} is completed: there is nothing to pause"
            raise ConflictError(message, field="id", value=id)
        task = paused(tx, task, "paused")
        self._tell(tx, task, "task.paused")
        return task

    def resume(self, tx: Tx, id: TaskId) -> Task:
        """From now on: what was missed meanwhile is not made up for."""
        task = known_task(tx, id)
        if task.status is Status.ACTIVE:
            return task
        _own_group(tx, task)
        next_at = next_due(task.schedule, anchor=task.anchor, after=self._clock.now())
        if next_at is None:
            message = (
                f"the time of the task {id!r}, {task.schedule.value}, is over: give it a new one,"
                " or run it by hand"
            )
            raise ConflictError(message, field="id", value=id)
        resumed = replace(task, status=Status.ACTIVE, next_at=next_at, failures=0)
        keep_pace(tx, resumed)
        tx.tasks.save(resumed)
        self._tell(tx, resumed, "task.resumed")
        return resumed

    def cancel(self, tx: Tx, id: TaskId) -> Task:
        """The task and its ticks are gone; a run of it that has begun ends by itself."""
        task = known_task(tx, id)
        tx.tasks.remove(task.id)
        self._tell(tx, task, "task.cancelled")
        return task

    def run_now(self, tx: Tx, id: TaskId) -> Tick:
        """One tick more, due now, whatever the status; its schedule stays as it is."""
        task = known_task(tx, id)
        _own_group(tx, task)
        if tx.tasks.waiting(task) >= MAX_WAITING:
            message = f"{MAX_WAITING} ticks of the task {id!r} wait already: let them run first"
            raise ConflictError(message, field="id", value=id)
        tick = Tick(
            task=task.id,
            due=self._clock.now(),
            chat=task.chat,
            state=TickState.DUE,
            why=BY_HAND,
        )
        if tx.tasks.add_tick(tick):
            tx.tasks.prune_ticks(task.id, MAX_TICKS)
            self._engine.ring(tx, task.chat)
            self._tell(tx, task, "task.run_by_hand")
        return tick

    def _rescheduled(self, task: Task, change: TaskChange) -> Task:
        now = self._clock.now()
        old = task.schedule
        schedule = parse_schedule(
            old.type if change.schedule_type is None else change.schedule_type,
            old.value if change.schedule_value is None else change.schedule_value,
            old.timezone if change.timezone is None else change.timezone,
            now,
        )
        is_paused = task.status is Status.PAUSED
        return replace(
            task,
            schedule=schedule,
            anchor=now,
            status=Status.PAUSED if is_paused else Status.ACTIVE,
            next_at=None if is_paused else next_due(schedule, anchor=now, after=now),
        )

    def _fresh_id(self, tx: Tx, asked: str | None) -> TaskId:
        if asked is None:
            return TaskId(self._new_id("task"))
        id = parse_id(asked)
        if tx.tasks.get(id) is not None:
            message = f"the id {id!r} is taken: choose another, or give none"
            raise ConflictError(message, field="id", value=id)
        return id

    def _tell(self, tx: Tx, task: Task, event: str) -> None:
        def tell() -> None:
            log.info(event, task=task.id, folder=task.folder, next_at=task.next_at)
            self._poke()
            self._changed(task.folder)

        tx.after_commit(tell)


def known_task(tx: Tx, id: str) -> Task:
    """Raises `NotFoundError`."""
    task = tx.tasks.get(TaskId(id))
    if task is None:
        raise NotFoundError(f"no task has the id {id[:80]!r}", field="id", value=id[:80])
    return task


def paused(tx: Tx, task: Task, why: str) -> Task:
    """No more ticks; those that wait are skipped, and say why."""
    task = replace(task, status=Status.PAUSED, next_at=None)
    tx.tasks.save(task)
    tx.tasks.skip_waiting(task.id, why)
    return task


def _group(tx: Tx, folder: str) -> Group:
    group = tx.groups.of_folder(folder)
    if group is None:
        message = f"no group has the folder {folder[:80]!r}"
        raise NotFoundError(message, field="group", value=folder[:80])
    return group


def _own_group(tx: Tx, task: Task) -> None:
    """A group may have been removed since, and its folder given to another chat."""
    group = tx.groups.of_folder(task.folder)
    if group is None or group.chat != task.chat:
        message = (
            f"the task {task.id!r} is for {task.chat}, which is not the group {task.folder!r} any"
            " more: register it again, or cancel the task"
        )
        raise ConflictError(message, field="id", value=task.id)


def _given(value: str | None, parse: Callable[[str], T], otherwise: T) -> T:
    return otherwise if value is None else parse(value)
