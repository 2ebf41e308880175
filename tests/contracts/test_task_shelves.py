"""What every store promises of many tasks and many ticks: they are counted, shortened and cut."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hallporter.domain.chat import ChatSeen
from hallporter.domain.ids import ChatId, Folder, TaskId
from hallporter.domain.schedule import Schedule, Type
from hallporter.domain.task import Burden, Over, Status, Tick, TickState
from hallporter.ports import Store
from hallporter.stores.sqlite import open_store
from tests.fakes.clock import START, FakeClock
from tests.fakes.tasks import a_task

if TYPE_CHECKING:
    from hallporter.books import Tx

CHAT, OTHER = ChatId("fake:family"), ChatId("fake:work")
FAMILY, WORK = Folder("family"), Folder("work")
TASK = TaskId("task_1")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "hallporter.db", FakeClock()) as opened:
        for chat in (CHAT, OTHER):
            seen = ChatSeen(chat=chat, channel="fake", at=START)
            await opened.write(lambda tx, seen=seen: tx.chats.seen(seen))  # type: ignore[misc]
        yield opened


def add_task(tx: Tx, number: int, folder: Folder = FAMILY, /, **changes: object) -> None:
    task = replace(
        a_task(CHAT if folder == FAMILY else OTHER),
        id=TaskId(f"task_{number}"),
        folder=folder,
        created_at=START + timedelta(seconds=number),
        **changes,  # type: ignore[arg-type]
    )
    tx.tasks.add(task)


def tick(minutes: int, state: TickState = TickState.DUE, why: str = "") -> Tick:
    due = START + timedelta(minutes=minutes)
    return Tick(task=TASK, due=due, chat=CHAT, state=state, why=why)


def add_ticks(tx: Tx, *ticks: Tick) -> None:
    for one in ticks:
        assert tx.tasks.add_tick(one)


async def test_what_a_folders_tasks_take_is_added_up_without_one_of_them(store: Store) -> None:
    every = Schedule(type=Type.INTERVAL, value="1500", timezone="UTC")
    daily = Schedule(type=Type.CRON, value="0 9 * * *", timezone="UTC")
    over = {"status": Status.COMPLETED, "next_at": None}

    def fn(tx: Tx) -> None:
        add_task(tx, 1, prompt="äö", schedule=every)
        add_task(tx, 2, prompt="😀" * 5, schedule=every)
        add_task(tx, 3, prompt="abc", schedule=every, **over)
        add_task(tx, 4, prompt="abcd", schedule=daily, **over)
        add_task(tx, 5, WORK, prompt="x" * 99, schedule=every)

    await store.write(fn)

    burden = await store.read(lambda tx: tx.tasks.burden(FAMILY, but=TASK))
    none = await store.read(lambda tx: tx.tasks.burden(Folder("club"), but=TASK))
    completed = await store.read(lambda tx: tx.tasks.completed(FAMILY, but=TaskId("task_3")))

    assert burden == Burden(tasks=3, words=12, per_minute=40.0)
    assert none == Burden(tasks=0, words=0, per_minute=0.0)
    assert completed == [Over(id=TaskId("task_4"), words=4)]


async def test_the_tasks_of_others_come_with_the_beginning_of_their_prompts(store: Store) -> None:
    def fn(tx: Tx) -> None:
        add_task(tx, 1)
        add_task(tx, 3, WORK, prompt="x")
        add_task(tx, 2, WORK, prompt="😀" * 5)

    await store.write(fn)

    others = await store.read(lambda tx: tx.tasks.of_others(FAMILY, 3))

    assert [(task.id, task.prompt) for task in others] == [("task_2", "😀" * 3), ("task_3", "x")]
    assert others[1] == await store.read(lambda tx: tx.tasks.get(TaskId("task_3")))


async def test_a_ticks_row_is_given_to_another_that_has_none(store: Store) -> None:
    def fn(tx: Tx) -> None:
        add_task(tx, 1)
        add_ticks(tx, tick(1), tick(2, TickState.SKIPPED, "a"))

    await store.write(fn)
    moved = tick(3, TickState.SKIPPED, "b")

    assert await store.write(lambda tx: tx.tasks.move_tick(tick(2), moved))
    assert not await store.write(lambda tx: tx.tasks.move_tick(moved, tick(1)))

    assert await store.read(lambda tx: tx.tasks.ticks(TASK, 9)) == [moved, tick(1)]


async def test_the_newest_ticks_are_kept_and_what_waits_or_runs(store: Store) -> None:
    ran = [tick(number, TickState.RAN) for number in range(2, 7)]

    def fn(tx: Tx) -> None:
        add_task(tx, 1)
        add_ticks(tx, tick(0), tick(1, TickState.RUNNING), *ran)
        tx.tasks.prune_ticks(TASK, 9)
        tx.tasks.prune_ticks(TASK, 2)

    await store.write(fn)

    kept = [one.due for one in await store.read(lambda tx: tx.tasks.ticks(TASK, 9))]
    assert kept == [START + timedelta(minutes=number) for number in (6, 5, 1, 0)]
