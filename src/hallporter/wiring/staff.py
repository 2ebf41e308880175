"""Those who carry a message through the house, joined to one another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hallporter
from hallporter.agents.launching import Equipment
from hallporter.agents.sandboxed import SandboxedAgents
from hallporter.agents.source import readable_source
from hallporter.agents.tool_server import install, installed_libraries
from hallporter.agents.workspace import Premises
from hallporter.domain.errors import AgentRefusedError
from hallporter.domain.happening import AccessChanged
from hallporter.domain.ids import SANDBOXES
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.mailroom.room import Mailroom
from hallporter.sandboxes.machine import interpreter
from hallporter.settings import check_agent
from hallporter.stores.media import Media
from hallporter.switchboard.clerk import Clerk
from hallporter.switchboard.commands import Commands
from hallporter.switchboard.delivery import Delivery
from hallporter.switchboard.enclosures import Enclosures
from hallporter.switchboard.exchange import Exchange, House
from hallporter.switchboard.groups import Groups
from hallporter.switchboard.intake import Intake
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.record import Record
from hallporter.switchboard.scheduler import Scheduler
from hallporter.switchboard.slash_lines import SlashLines
from hallporter.switchboard.tasks import Tasks
from hallporter.switchboard.ticks import Ticks

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from hallporter.domain.brief import LateBlock
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId, Folder, Pool
    from hallporter.home import Home
    from hallporter.ports import Agent
    from hallporter.settings import HostSettings
    from hallporter.wiring.ground import Ground

_PROGRAM_KINDS = ("demo", "command")


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """In the order in which a message meets them, and those they turn to."""

    groups: Groups
    intake: Intake
    engine: EmbeddedEngine
    exchange: Exchange
    clerk: Clerk
    agents: SandboxedAgents
    equipment: Equipment
    mailroom: Mailroom
    enclosures: Enclosures
    scheduler: Scheduler
    tasks: Tasks
    outbound: Outbound
    delivery: Delivery
    close_warm: Callable[[ChatId], None]

    def agent_of_kind(self, kind: str) -> Agent:
        return agent_of_kind(self.agents, kind)

    async def dismiss(self, group: Group) -> None:
        """Until nobody works for the group any more."""
        self.engine.signal(group.chat, "stop")
        await self.agents.evict(group.chat)


def hire(ground: Ground, tasks: asyncio.TaskGroup) -> Staff:
    """`tasks` is the parent of what a commit sets off."""
    store, feed, clock, new_id = ground.store, ground.feed, ground.clock, ground.new_id
    host, name = ground.settings.host, ground.assistant_name

    async def on_late(block: LateBlock) -> None:
        await exchange.late(block)

    def close_warm(chat: ChatId) -> None:
        tasks.create_task(agents.forget(chat), name=f"forget:{chat}")

    def tasks_changed(folder: Folder) -> None:
        mailroom.changed(folder)

    def groups_changed(folder: Folder) -> None:
        mailroom.regrouped(folder)
        feed.publish(AccessChanged())

    delivery = Delivery(store=store, channel_of=ground.channel_of, feed=feed, clock=clock)
    engine = EmbeddedEngine(store=store, clock=clock, pool_size=_pool_sizes(host))
    outbound = Outbound(
        channel_of=ground.channel_of,
        wake_delivery=delivery.wake,
        feed=feed,
        clock=clock,
        new_id=new_id,
        speaker=name,
    )
    scheduler = Scheduler(store=store, engine=engine, clock=clock, changed=tasks_changed)
    standing = Tasks(
        store=store,
        engine=engine,
        clock=clock,
        new_id=new_id,
        timezone=ground.timezone,
        poke=scheduler.poke,
        changed=tasks_changed,
    )
    clerk = _clerk(ground, engine, outbound, standing)
    equipment = _equipment(ground)
    agents = SandboxedAgents(
        sandbox_for=ground.stock.named,
        equipment=equipment,
        clock=clock,
        max_live=host.max_concurrent_containers,
        on_late=on_late,
    )
    groups = Groups(
        store=store,
        clock=clock,
        channel_of=ground.channel_of,
        check_agent=check_agent,
        refuse_fixed=ground.loaded.refuse_fixed,
        refuse_fixed_senders=ground.loaded.refuse_fixed_senders,
        close_warm=close_warm,
        changed=groups_changed,
        assistant_name=name,
    )
    enclosures = Enclosures(store=store, shelf=Media(ground.home.path), new_id=new_id)
    mailroom = Mailroom(
        data=ground.home.path / "data",
        store=store,
        commands=Commands(
            store=store,
            tasks=standing,
            groups=groups,
            outbound=outbound,
            enclosures=enclosures,
            channels=ground.channels,
            clock=clock,
        ),
        clock=clock,
        new_id=new_id,
    )
    exchange = Exchange(
        store=store,
        clerk=clerk,
        agents=lambda kind: agent_of_kind(agents, kind),
        agent_of=ground.agent_of,
        channel_of=ground.channel_of,
        mail=mailroom,
        clock=clock,
        house=House(assistant_name=name, timezone=ground.timezone),
    )
    intake = Intake(
        store=store,
        engine=engine,
        feed=feed,
        clock=clock,
        new_id=new_id,
        channel_of=ground.channel_of,
        slash_lines=SlashLines(
            engine=engine,
            outbound=outbound,
            clerk=clerk,
            clock=clock,
            agent_of=ground.agent_of,
            close_warm=close_warm,
            assistant_name=name,
        ),
        senders_of=ground.senders_of,
    )
    return Staff(
        groups=groups,
        intake=intake,
        engine=engine,
        exchange=exchange,
        clerk=clerk,
        agents=agents,
        equipment=equipment,
        mailroom=mailroom,
        enclosures=enclosures,
        scheduler=scheduler,
        tasks=standing,
        outbound=outbound,
        delivery=delivery,
        close_warm=close_warm,
    )


def agent_of_kind(agents: SandboxedAgents, kind: str) -> Agent:
    """Who answers for this kind; raises `AgentRefusedError` for one that we do not have."""
    if kind in _PROGRAM_KINDS:
        return agents
    known = " or ".join(f"'{one}'" for one in _PROGRAM_KINDS)
    message = f"agents of kind '{kind}' are not part of this version: use {known}"
    raise AgentRefusedError(message, kind=kind, setting="kind")


def _clerk(ground: Ground, engine: EmbeddedEngine, outbound: Outbound, tasks: Tasks) -> Clerk:
    record = Record(feed=ground.feed, clock=ground.clock)
    ticks = Ticks(
        engine=engine,
        outbound=outbound,
        record=record,
        clock=ground.clock,
        new_id=ground.new_id,
        pause=tasks.pause,
    )
    return Clerk(
        engine=engine,
        outbound=outbound,
        record=record,
        ticks=ticks,
        clock=ground.clock,
        new_id=ground.new_id,
    )


def _equipment(ground: Ground) -> Equipment:
    settings = ground.settings
    python = interpreter()
    return Equipment(
        premises=Premises(
            home=ground.home.path,
            source=_source(ground.home),
            elsewhere=_database_files(settings.store.path),
        ),
        python=python,
        tool_server=install(
            ground.home.run_dir / "bin", python=python, libraries=installed_libraries()
        ),
        max_output_size=settings.host.max_output_size,
    )


def _source(home: Home) -> Path:
    return readable_source(Path(hallporter.__file__).parents[1], home.run_dir / "source")


def _database_files(database: Path) -> tuple[Path, ...]:
    return tuple(database.with_name(f"{database.name}{part}") for part in ("", "-wal", "-shm"))


def _pool_sizes(host: HostSettings) -> Callable[[Pool], int]:
    def size(pool: Pool) -> int:
        return host.max_concurrent_containers if pool == SANDBOXES else host.max_remote

    return size
