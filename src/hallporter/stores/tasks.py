"""Tasks and their ticks in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.ids import ChatId, Folder, TaskId
from hallporter.domain.schedule import Schedule, Type
from hallporter.domain.task import (
    Burden,
    ContextMode,
    Misfire,
    Over,
    Status,
    Task,
    Tick,
    TickState,
)
from hallporter.stores.columns import maybe_time_out, time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from hallporter.stores.queries import Row, Run


class SqlTasks:
    """`books.Tasks` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, task: Task) -> None:
        self._run(
            "task_add",
            folder=task.folder,
            chat=task.chat,
            created_at=time_in(task.created_at),
            created_by=task.created_by,
            **_changing(task),
        )

    def get(self, task: TaskId) -> Task | None:
        rows = self._run("task_get", id=task)
        return _task(rows[0]) if rows else None

    def save(self, task: Task) -> None:
        self._run("task_save", **_changing(task))

    def remove(self, task: TaskId) -> None:
        self._run("tick_remove_all", task=task)
        self._run("task_remove", id=task)

    def all(self) -> Sequence[Task]:
        return [_task(row) for row in self._run("task_all")]

    def of_folder(self, folder: Folder) -> Sequence[Task]:
        return [_task(row) for row in self._run("task_of_folder", folder=folder)]

    def of_others(self, folder: Folder, words: int) -> Sequence[Task]:
        rows = self._run("task_of_others", folder=folder, words=words)
        return [_task(row) for row in rows]

    def burden(self, folder: Folder, *, but: TaskId) -> Burden:
        row = self._run("task_burden", folder=folder, but=but)[0]
        return Burden(tasks=row["tasks"], words=row["words"], per_minute=row["per_minute"])

    def completed(self, folder: Folder, *, but: TaskId) -> Sequence[Over]:
        rows = self._run("task_completed", folder=folder, but=but)
        return [Over(id=TaskId(row["id"]), words=row["words"]) for row in rows]

    def due(self, now: datetime, limit: int) -> Sequence[Task]:
        return [_task(row) for row in self._run("task_due", now=time_in(now), limit=limit)]

    def counts(self) -> Mapping[str, int]:
        return {row["status"]: row["count"] for row in self._run("task_counts")}

    def next_at(self) -> datetime | None:
        return maybe_time_out(self._run("task_next_at")[0]["next_at"])

    def add_tick(self, tick: Tick) -> bool:
        return bool(self._run("tick_add", chat=tick.chat, **_tick_values(tick)))

    def tick(self, task: TaskId, due: datetime) -> Tick | None:
        rows = self._run("tick_get", task=task, due=time_in(due))
        return _tick(rows[0]) if rows else None

    def save_tick(self, tick: Tick) -> None:
        self._run("tick_save", **_tick_values(tick))

    def move_tick(self, tick: Tick, to: Tick) -> bool:
        values = {"task": tick.task, "due": time_in(tick.due), "to": time_in(to.due)}
        return bool(self._run("tick_move", why=to.why, **values))

    def prune_ticks(self, task: TaskId, keep: int) -> None:
        self._run("tick_prune", task=task, keep=keep)

    def waiting_tick(self, chat: ChatId) -> Tick | None:
        rows = self._run("tick_waiting", chat=chat)
        return _tick(rows[0]) if rows else None

    def waiting(self, task: Task) -> int:
        rows = self._run("tick_count_waiting", task=task.id, chat=task.chat)
        return int(rows[0]["count"])

    def ticks(self, task: TaskId, limit: int, before: datetime | None = None) -> Sequence[Tick]:
        values = {"task": task, "limit": limit, "before": time_in(before)}
        return [_tick(row) for row in self._run("tick_all", **values)]

    def skip_waiting(self, task: TaskId, why: str) -> None:
        self._run("tick_skip_waiting", task=task, why=why)

    def given_up(self, failures: int) -> Sequence[Task]:
        return [_task(row) for row in self._run("task_given_up", failures=failures)]


def _changing(task: Task) -> dict[str, object]:
    return {
        "id": task.id,
        "prompt": task.prompt,
        "schedule_type": str(task.schedule.type),
        "schedule_value": task.schedule.value,
        "timezone": task.schedule.timezone,
        "context_mode": str(task.context_mode),
        "misfire": str(task.misfire),
        "status": str(task.status),
        "anchor": time_in(task.anchor),
        "next_at": time_in(task.next_at),
        "last_at": time_in(task.last_at),
        "failures": task.failures,
    }


def _task(row: Row) -> Task:
    return Task(
        id=TaskId(row["id"]),
        folder=Folder(row["folder"]),
        chat=ChatId(row["chat"]),
        prompt=row["prompt"],
        schedule=Schedule(
            type=Type(row["schedule_type"]), value=row["schedule_value"], timezone=row["timezone"]
        ),
        context_mode=ContextMode(row["context_mode"]),
        misfire=Misfire(row["misfire"]),
        status=Status(row["status"]),
        anchor=time_out(row["anchor"]),
        next_at=maybe_time_out(row["next_at"]),
        last_at=maybe_time_out(row["last_at"]),
        failures=row["failures"],
        created_at=time_out(row["created_at"]),
        created_by=row["created_by"],
    )


def _tick_values(tick: Tick) -> dict[str, object]:
    return {
        "task": tick.task,
        "due": time_in(tick.due),
        "state": str(tick.state),
        "why": tick.why,
        "started_at": time_in(tick.started_at),
        "ended_at": time_in(tick.ended_at),
        "attempts": tick.attempts,
    }


def _tick(row: Row) -> Tick:
    return Tick(
        task=TaskId(row["task"]),
        due=time_out(row["due"]),
        chat=ChatId(row["chat"]),
        state=TickState(row["state"]),
        why=row["why"],
        started_at=maybe_time_out(row["started_at"]),
        ended_at=maybe_time_out(row["ended_at"]),
        attempts=row["attempts"],
    )
