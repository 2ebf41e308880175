"""The composition root: settings in, a switchboard out, every room joined to its neighbours."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import hallporter
from hallporter.agents.launching import Equipment
from hallporter.agents.sandboxed import SandboxedAgents
from hallporter.agents.source import readable_source
from hallporter.agents.workspace import Premises
from hallporter.api.app import create_app
from hallporter.api.desk import Desk
from hallporter.api.metrics import Metrics
from hallporter.channels.webchat import WebChat
from hallporter.clock import SystemClock
from hallporter.domain.errors import AgentRefusedError, UnavailableError
from hallporter.domain.ids import SANDBOXES
from hallporter.domain.token import digest
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.home import admin_token, installation
from hallporter.identifiers import IdMaker
from hallporter.sandboxes.bubblewrap import Bubblewrap
from hallporter.sandboxes.machine import interpreter
from hallporter.sandboxes.process import Process
from hallporter.sandboxes.stock import Stock
from hallporter.sandboxes.watchman import on_duty
from hallporter.settings import check_agent
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.sqlite import open_store
from hallporter.switchboard.clerk import Clerk
from hallporter.switchboard.delivery import Delivery
from hallporter.switchboard.exchange import Exchange, House
from hallporter.switchboard.groups import Groups
from hallporter.switchboard.intake import Intake
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.slash_lines import SlashLines
from hallporter.switchboard.status import Status
from hallporter.switchboard.story import Story
from hallporter.switchboard.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractContextManager

    from starlette.types import ASGIApp

    from hallporter.domain.brief import AgentSettings, LateBlock
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId, Pool
    from hallporter.home import Home
    from hallporter.ports import Agent, Channel, Store
    from hallporter.settings import HostSettings, Loaded

_PROGRAM_KINDS = ("demo", "command")
_DISMISSAL = timedelta(seconds=20)  # an agent that ignores every sign is killed well before
_LOOK = timedelta(milliseconds=50)  # between two looks whether it is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """Everything that has a life of its own, and the door to it all."""

    store: Store
    feed: MemoryFeed
    engine: EmbeddedEngine
    exchange: Exchange
    clerk: Clerk
    delivery: Delivery
    agents: SandboxedAgents
    intake: Intake
    groups: Groups
    status: Status
    metrics: Metrics
    channels: Sequence[Channel]
    sandboxes: Stock
    watch: AbstractContextManager[None]  # over what the sandboxes run
    app: ASGIApp


@contextlib.asynccontextmanager
async def build(home: Home, loaded: Loaded, tasks: asyncio.TaskGroup) -> AsyncIterator[Rooms]:
    """All rooms, joined; nothing runs yet. `tasks` is the parent of what a commit sets off."""
    settings = loaded.settings
    name = settings.host.assistant_name
    clock = SystemClock()
    new_id = IdMaker(clock)
    feed = MemoryFeed()
    webchat = WebChat(feed=feed)
    channels: tuple[Channel, ...] = (webchat,)
    run = secrets.token_hex(4)
    stock = _stock(home, run, str(settings.agent["sandbox"]))

    def channel_of(chat: ChatId) -> Channel | None:
        return next((channel for channel in channels if channel.owns(chat)), None)

    def agent_of(group: Group) -> AgentSettings:
        return settings.agent_for(group.folder, group.agent)

    def kind_of(group: Group) -> str:
        return settings.kind_for(group.folder, group.agent)

    async def on_late(block: LateBlock) -> None:
        await exchange.late(block)

    def close_warm(chat: ChatId) -> None:
        tasks.create_task(agents.forget(chat), name=f"forget:{chat}")

    async def dismiss(group: Group) -> None:
        engine.signal(group.chat, "stop")
        try:
            async with asyncio.timeout(_DISMISSAL.total_seconds()):
                while any(agent.folder == group.folder for agent in agents.live()):
                    await agents.forget(group.chat)
                    await clock.sleep(_LOOK)
        except TimeoutError as error:
            message = f"the agent of {group.folder!r} does not end: try again in a minute"
            raise UnavailableError(message, folder=group.folder) from error

    async with open_store(settings.store.path, clock) as store:
        delivery = Delivery(store=store, channel_of=channel_of, feed=feed, clock=clock)
        engine = EmbeddedEngine(store=store, clock=clock, pool_size=_pool_sizes(settings.host))
        outbound = Outbound(
            channel_of=channel_of,
            wake_delivery=delivery.wake,
            feed=feed,
            clock=clock,
            new_id=new_id,
            speaker=name,
        )
        clerk = Clerk(engine=engine, outbound=outbound, feed=feed, clock=clock, new_id=new_id)
        agents = SandboxedAgents(
            sandbox_for=stock.named,
            equipment=Equipment(
                premises=Premises(home=home.path, source=_source(home)),
                python=interpreter(),
                max_output_size=settings.host.max_output_size,
            ),
            clock=clock,
            max_live=settings.host.max_concurrent_containers,
            on_late=on_late,
        )
        exchange = Exchange(
            store=store,
            clerk=clerk,
            agents=_by_kind(agents),
            agent_of=agent_of,
            channel_of=channel_of,
            clock=clock,
            house=House(assistant_name=name, timezone=settings.host.timezone),
        )
        slash_lines = SlashLines(
            engine=engine,
            outbound=outbound,
            feed=feed,
            clock=clock,
            agent_of=agent_of,
            close_warm=close_warm,
            assistant_name=name,
        )
        intake = Intake(
            store=store,
            engine=engine,
            feed=feed,
            clock=clock,
            new_id=new_id,
            channel_of=channel_of,
            slash_lines=slash_lines,
        )
        groups = Groups(
            store=store,
            clock=clock,
            channel_of=channel_of,
            check_agent=check_agent,
            refuse_fixed=loaded.refuse_fixed,
            close_warm=close_warm,
            assistant_name=name,
        )
        status = Status(
            store=store,
            engine=engine,
            channels=channels,
            agents=agents,
            sandboxes=stock.report,
            clock=clock,
        )
        metrics = Metrics()
        desk = Desk(
            intake=intake,
            story=Story(store=store),
            groups=groups,
            tokens=Tokens(store=store, clock=clock, new_id=new_id),
            status=status,
            metrics=metrics,
            feed=feed,
            clock=clock,
            new_id=new_id,
            web=webchat,
            channel_of=channel_of,
            kind_of=kind_of,
            dismiss=dismiss,
            purge=home.purge,
            assistant_name=name,
            admin_digest=digest(admin_token(home)),
            version=hallporter.__version__,
        )
        yield Rooms(
            store=store,
            feed=feed,
            engine=engine,
            exchange=exchange,
            clerk=clerk,
            delivery=delivery,
            agents=agents,
            intake=intake,
            groups=groups,
            status=status,
            metrics=metrics,
            channels=channels,
            sandboxes=stock,
            watch=on_duty(installation(home), run),
            app=create_app(desk),
        )


def _source(home: Home) -> Path:
    return readable_source(Path(hallporter.__file__).parents[1], home.run_dir / "source")


def _stock(home: Home, run: str, preferred: str) -> Stock:
    label = installation(home)
    plain = Process(installation=label, run=run, run_dir=home.run_dir / "boxes")
    return Stock([Bubblewrap(installation=label, run=run), plain], preferred)


def _pool_sizes(host: HostSettings) -> Callable[[Pool], int]:
    def size(pool: Pool) -> int:
        return host.max_concurrent_containers if pool == SANDBOXES else host.max_remote

    return size


def _by_kind(agents: SandboxedAgents) -> Callable[[str], Agent]:
    def host_of(kind: str) -> Agent:
        if kind in _PROGRAM_KINDS:
            return agents
        known = " or ".join(f"'{one}'" for one in _PROGRAM_KINDS)
        message = f"agents of kind '{kind}' are not part of this version: use {known}"
        raise AgentRefusedError(message, kind=kind)

    return host_of
