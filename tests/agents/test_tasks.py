"""A task's agent: always a fresh one, kept for its last words only, and never used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.agents.wording import stdin_of
from hallporter.domain.brief import Batch, Brief, Snapshots
from hallporter.domain.ids import ChatId
from hallporter_wire.stdin import decode_input
from tests.agents.room import PATIENCE, Room, brief, next_block, open_room, until
from tests.fakes.clock import FakeClock
from tests.fakes.tasks import a_task


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as opened:
        yield opened


def task_brief(prompt: str, *, epoch: int = 1, folder: str = "family") -> Brief:
    task = a_task(ChatId(f"fake:{folder}"), prompt=prompt)
    given = brief("", epoch=epoch, folder=folder)
    return replace(given, task=task, batch=Batch(lines=(), through=7))


async def run(room: Room, given: Brief) -> str | None:
    async with room.agents.seat(given) as seat:
        return (await next_block(seat)).text


@pytest.mark.requirement("prompt.task.prompt-text")
@pytest.mark.requirement("container.stdin.is-scheduled-task", "container.stdin.is-task")
@pytest.mark.requirement("container.stdin.task-context", "container.stdin.tasks-snapshot")
def test_a_task_is_told_on_stdin_in_both_dialects() -> None:
    given = replace(
        task_brief("count the cups"), snapshots=Snapshots(tasks="[1]", groups='{"groups":[]}')
    )

    told = decode_input(stdin_of(given))

    context, _, text = told.prompt.partition("\n")
    assert context.startswith("<context ")
    assert (text, told.task_context) == ("count the cups", "count the cups")
    assert (told.is_scheduled_task, told.messages, told.through) == (True, (), 7)
    assert (told.tasks_snapshot, told.groups_snapshot) == ("[1]", '{"groups":[]}')


def test_messages_are_told_with_the_snapshots_too_and_are_no_task() -> None:
    told = decode_input(stdin_of(brief("hello")))

    assert (told.is_scheduled_task, told.task_context) == (False, None)
    assert (told.tasks_snapshot, told.groups_snapshot) == ("[]", "{}")


@pytest.mark.rule("R13")
def test_a_retry_is_told_what_was_sent_before() -> None:
    given = replace(brief("hello"), attempt=2, sent=("I am on it",))

    context, _, _ = decode_input(stdin_of(given)).prompt.partition("\n")

    assert 'attempt="2"' in context
    assert "<sent>I am on it</sent>" in context


@pytest.mark.rule("R7")
async def test_a_task_gets_a_fresh_agent_and_waits_behind_no_idle_one(room: Room) -> None:
    await room.turn("echo one")
    warm = room.pid()

    async with asyncio.timeout(PATIENCE):
        assert await run(room, task_brief("echo two", epoch=2)) == "two"

    assert room.pid() != warm


@pytest.mark.rule("R7")
@pytest.mark.parametrize("is_task", [True, False], ids=["another task", "a message"])
async def test_a_tasks_agent_is_never_used_again(room: Room, *, is_task: bool) -> None:
    await run(room, task_brief("echo one"))
    old = room.pid()

    after = task_brief("echo two", epoch=2) if is_task else brief("echo two", epoch=2, through=8)
    assert await run(room, after) == "two"

    assert room.pid() != old


async def test_a_tasks_agent_is_closed_ten_seconds_after_its_result(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_room(tmp_path, clock=clock) as room:
        await run(room, task_brief("echo one"))
        clock.advance(timedelta(seconds=9))
        await asyncio.sleep(0)
        assert room.states() == {"family": "warm"}

        clock.advance(timedelta(seconds=1))

        await room.gone()


@pytest.mark.rule("R15")
async def test_a_tasks_agent_makes_room_before_any_other(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_room(tmp_path, clock=clock, max_live=2) as room:
        await room.turn("echo one", folder="older")
        clock.tick()
        await run(room, task_brief("echo two", folder="task"))
        clock.tick()

        async with asyncio.timeout(PATIENCE):
            await room.turn("echo three", folder="newer")

        await until(lambda: set(room.states()) == {"older", "newer"})
