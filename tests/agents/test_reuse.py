"""A warm agent is used again only as it was, and no agent talks faster than it is heard."""

from __future__ import annotations

import asyncio
import secrets
from asyncio import StreamReader, StreamWriter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hallporter.clock import SystemClock
from hallporter.domain.brief import Brief, Fitness, Launch
from hallporter.ports import Box, Sandbox
from hallporter_wire.blocks import Block as WireBlock
from hallporter_wire.blocks import encode_block
from tests.agents.room import (
    PATIENCE,
    brief,
    foreign,
    make_agents,
    marked,
    next_block,
    open_room,
)
from tests.sandboxes import boxes

FLOOD = 3000  # blocks
AT_MOST = 600  # blocks that wait to be stored: the limit, and what one more look can bring


def with_rank(given: Brief, *, is_main: bool) -> Brief:
    return replace(given, group=replace(given.group, is_main=is_main))


@pytest.mark.rule("R9")
@pytest.mark.parametrize("becomes_main", [True, False], ids=["becomes main", "is main no more"])
async def test_a_group_whose_rank_changed_gets_a_fresh_agent_with_other_mounts(
    tmp_path: Path, *, becomes_main: bool
) -> None:
    async with open_room(tmp_path) as room:
        before = with_rank(brief("echo one", epoch=1), is_main=not becomes_main)
        async with room.agents.seat(before) as seat:
            await next_block(seat)
        old = room.pid()

        after = with_rank(brief("echo two", epoch=2, through=2), is_main=becomes_main)
        async with room.agents.seat(after) as seat:
            assert (await next_block(seat)).text == "two"

        assert room.pid() != old
        assert marked(room.installation) == [room.pid()]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloodedBox:
    """`ports.Box`: a real program, with another's words on its stdout."""

    box: Box
    stdout: StreamReader

    @property
    def pid(self) -> int:
        return self.box.pid

    @property
    def stdin(self) -> StreamWriter:
        return self.box.stdin

    @property
    def stderr(self) -> StreamReader:
        return self.box.stderr

    def interrupt(self) -> None:
        self.box.interrupt()

    def terminate(self) -> None:
        self.box.terminate()

    def kill(self) -> None:
        self.box.kill()

    async def wait(self) -> int:
        return await self.box.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class FloodedSandbox:
    """`ports.Sandbox` of flooded boxes."""

    sandbox: Sandbox
    stdout: StreamReader

    @property
    def name(self) -> str:
        return self.sandbox.name

    async def probe(self) -> Fitness:
        return await self.sandbox.probe()

    async def launch(self, launch: Launch) -> Box:
        return FloodedBox(box=await self.sandbox.launch(launch), stdout=self.stdout)

    async def sweep(self) -> int:
        return await self.sandbox.sweep()


async def test_a_program_nobody_keeps_up_with_is_read_no_further_until_it_is_heard(
    tmp_path: Path,
) -> None:
    said = [
        encode_block(WireBlock(status="success", result=f"word {number}", through=0, idle=False))
        for number in range(FLOOD)
    ]
    stdout = StreamReader()
    stdout.feed_data(b"".join(said))
    installation = secrets.token_hex(4)
    box = boxes.make("process", installation, tmp_path / "run")
    agents, _ = make_agents(
        tmp_path / "home",
        FloodedSandbox(sandbox=box, stdout=stdout),
        clock=SystemClock(),
        late=[],
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(agents.serve(), name="agents")
        await asyncio.sleep(0)  # the room opens with its first step
        async with agents.seat(brief("hello", settings=foreign("puppet.py"))) as seat:
            heard = [(await next_block(seat)).text]

            async with asyncio.timeout(PATIENCE):
                unread = await stdout.read(sum(map(len, said)))
            assert unread.count(b"\n") > 3 * (FLOOD - AT_MOST)

            stdout.feed_data(unread)
            stdout.feed_eof()
            heard += [(await next_block(seat)).text for _ in range(FLOOD - 1)]
            assert heard == [f"word {number}" for number in range(FLOOD)]
        agents.close()
    assert not marked(installation)
