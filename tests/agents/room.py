"""The agents room with real boxes, and what its tests share."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import hallporter
from hallporter.agents.launching import Equipment
from hallporter.agents.live import Patience
from hallporter.agents.sandboxed import SandboxedAgents
from hallporter.agents.tool_server import install
from hallporter.agents.workspace import Premises
from hallporter.clock import SystemClock
from hallporter.domain.brief import AgentSettings, Batch, Block, Brief, Exit, LateBlock, Line
from hallporter.domain.group import Group
from hallporter.domain.ids import ChatId, Folder, TurnId
from hallporter.ports import Clock, Sandbox, Seat
from hallporter.sandboxes import machine
from tests.fakes.clock import START
from tests.sandboxes import boxes

SOURCE = Path(hallporter.__file__).parents[1]
PROGRAMS = Path(__file__).parents[1] / "programs"
PATIENCE = 20.0  # seconds; a bound, never a measure
# A program that will not go is not waited for longer than a test can bear.
QUICK = Patience(
    close=timedelta(seconds=0.3),
    stop=timedelta(seconds=0.3),
    closing_marker=timedelta(seconds=0.3),
    farewell=timedelta(seconds=0.3),
)
MAX_OUTPUT = 100_000  # bytes
HALF_AN_HOUR = timedelta(minutes=30)

_SEATS = itertools.count(1)


def demo(sandbox: str = "process", *, idle_timeout: timedelta = HALF_AN_HOUR) -> AgentSettings:
    return AgentSettings(
        kind="demo", sandbox=sandbox, timeout=HALF_AN_HOUR, idle_timeout=idle_timeout
    )


def foreign(
    program: str,
    *words: str,
    sandbox: str = "process",
    timeout: timedelta = HALF_AN_HOUR,
) -> AgentSettings:
    """Kind `command`, with a program of tests/programs."""
    path = PROGRAMS / program
    shell = "sh" if path.suffix == ".sh" else machine.interpreter()
    return AgentSettings(
        kind="command",
        sandbox=sandbox,
        command=(shell, str(path), *words),
        timeout=timeout,
        idle_timeout=HALF_AN_HOUR,
    )


def group(folder: str = "family", *, is_main: bool = False) -> Group:
    return Group(
        chat=ChatId(f"fake:{folder}"),
        name=folder.title(),
        folder=Folder(folder),
        trigger="@Andy",
        requires_trigger=False,
        is_main=is_main,
        added_at=START,
    )


def batch(text: str, through: int) -> Batch:
    line = Line(id=f"m_{through}", at=START, sender="Ada", text=text)
    return Batch(lines=(line,), through=through)


def brief(
    text: str,
    *,
    through: int = 1,
    epoch: int = 1,
    session_no: int = 0,
    folder: str = "family",
    settings: AgentSettings | None = None,
) -> Brief:
    served = group(folder)
    return Brief(
        turn=TurnId(f"t_{next(_SEATS)}"),
        chat=served.chat,
        group=served,
        settings=settings or demo(),
        batch=batch(text, through),
        epoch=epoch,
        attempt=1,
        session_no=session_no,
        session_id=None,
        assistant_name="Andy",
        now=START,
        timezone="Europe/Berlin",
    )


async def until(condition: Callable[[], object]) -> None:
    """For what no event tells of: files and processes."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0.01)


async def next_block(seat: Seat) -> Block:
    async with asyncio.timeout(PATIENCE):
        event = await anext(aiter(seat.events()))
    assert isinstance(event, Block), event
    return event


async def next_exit(seat: Seat) -> Exit:
    async with asyncio.timeout(PATIENCE):
        event = await anext(aiter(seat.events()))
    assert isinstance(event, Exit), event
    return event


def marked(installation: str) -> list[int]:
    """The processes of this installation's boxes."""
    mark = f"\0HALLPORTER_BOX={installation}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in b"\0" + (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


@dataclass(kw_only=True)
class Room:
    """The room, and a view of what it does."""

    agents: SandboxedAgents
    installation: str
    premises: Premises
    late: list[LateBlock] = field(default_factory=list)

    def states(self) -> dict[str, str]:
        return {info.folder: info.state for info in self.agents.live()}

    def pid(self, folder: str = "family") -> int:
        return next(info.pid for info in self.agents.live() if info.folder == folder)

    async def gone(self, folder: str = "family") -> None:
        await until(lambda: folder not in self.states())

    def files(self, folder: str = "family") -> Path:
        return self.premises.group(group(folder))

    def input(self, folder: str = "family") -> Path:
        return self.premises.ipc(group(folder)) / "input"

    def strings(self, folder: str = "family") -> Strings:
        return Strings(self.files(folder) / "orders")

    async def turn(self, text: str, **more: object) -> list[Block]:
        """One turn as the exchange leads it: to the block that ends it."""
        given = brief(text, **more)  # type: ignore[arg-type]
        blocks: list[Block] = []
        async with self.agents.seat(given) as seat:
            while not blocks or not blocks[-1].idle or blocks[-1].through < given.batch.through:
                blocks.append(await next_block(seat))
        return blocks


class Strings:
    """Orders to the program puppet.py, done one after another."""

    def __init__(self, orders: Path) -> None:
        self._orders = orders

    def order(self, source: str) -> None:
        self._orders.mkdir(parents=True, exist_ok=True)
        aside = self._orders / "new"
        aside.write_text(source)
        aside.rename(self._orders / f"{next(_SEATS):06}.order")

    async def do(self, source: str) -> None:
        """Returns when it is done."""
        self.order(source)
        await until(lambda: not any(self._orders.iterdir()))


def make_agents(
    home: Path,
    sandbox: Sandbox,
    *,
    clock: Clock,
    late: list[LateBlock],
    max_live: int = 5,
) -> tuple[SandboxedAgents, Premises]:
    async def on_late(block: LateBlock) -> None:
        late.append(block)

    premises = Premises(home=home, source=SOURCE)
    agents = SandboxedAgents(
        sandbox_for=lambda _name: sandbox,
        equipment=Equipment(
            premises=premises,
            python=machine.interpreter(),
            tool_server=install(home / "bin", python=machine.interpreter(), libraries=()),
            max_output_size=MAX_OUTPUT,
        ),
        clock=clock,
        max_live=max_live,
        on_late=on_late,
        patience=QUICK,
    )
    return agents, premises


@contextlib.asynccontextmanager
async def open_room(
    path: Path,
    *,
    sandbox: str = "process",
    max_live: int = 5,
    clock: Clock | None = None,
) -> AsyncIterator[Room]:
    """Open, with an orderly end: nothing of it is left on the machine."""
    installation = secrets.token_hex(4)
    late: list[LateBlock] = []
    box = boxes.make(sandbox, installation, path / "run")
    agents, premises = make_agents(
        path / "home", box, clock=clock or SystemClock(), late=late, max_live=max_live
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(agents.serve(), name="agents")
        await asyncio.sleep(0)  # the room opens with its first step
        try:
            yield Room(agents=agents, installation=installation, premises=premises, late=late)
        finally:
            agents.close()
    assert not marked(installation)
