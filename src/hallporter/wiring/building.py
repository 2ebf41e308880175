"""The house is built: the ground, the staff, those who look after it, the doors."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.channels.webchat import WebChat
from hallporter.clock import SystemClock
from hallporter.home import installation
from hallporter.identifiers import IdMaker
from hallporter.sandboxes.bubblewrap import Bubblewrap
from hallporter.sandboxes.process import Process
from hallporter.sandboxes.stock import Stock
from hallporter.sandboxes.watchman import on_duty
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.sqlite import open_store
from hallporter.wiring.doors import open_doors
from hallporter.wiring.examination import call_doctor
from hallporter.wiring.ground import Ground
from hallporter.wiring.staff import hire
from hallporter.wiring.upkeep import keep_up

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractContextManager

    from starlette.types import ASGIApp

    from hallporter.agents.sandboxed import SandboxedAgents
    from hallporter.api.metrics import Metrics
    from hallporter.engine.embedded import EmbeddedEngine
    from hallporter.home import Home
    from hallporter.mailroom.room import Mailroom
    from hallporter.ports import Channel, Store
    from hallporter.settings import Loaded
    from hallporter.switchboard.clerk import Clerk
    from hallporter.switchboard.delivery import Delivery
    from hallporter.switchboard.exchange import Exchange
    from hallporter.switchboard.groups import Groups
    from hallporter.switchboard.importing.importing import Importing
    from hallporter.switchboard.intake import Intake
    from hallporter.switchboard.rounds import Rounds
    from hallporter.switchboard.scheduler import Scheduler
    from hallporter.switchboard.sessions import Sessions
    from hallporter.switchboard.status import Status


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
    sessions: Sessions
    importing: Importing
    rounds: Rounds
    scheduler: Scheduler
    mailroom: Mailroom
    channels: Sequence[Channel]
    sandboxes: Stock
    watch: AbstractContextManager[None]  # over what the sandboxes run
    app: ASGIApp


@contextlib.asynccontextmanager
async def build(home: Home, loaded: Loaded, tasks: asyncio.TaskGroup) -> AsyncIterator[Rooms]:
    """All rooms, joined; nothing runs yet. `tasks` is the parent of what a commit sets off."""
    settings = loaded.settings
    clock = SystemClock()
    feed = MemoryFeed()
    webchat = WebChat(feed=feed)
    run = secrets.token_hex(4)
    async with open_store(settings.store.path, clock) as store:
        ground = Ground(
            home=home,
            loaded=loaded,
            clock=clock,
            new_id=IdMaker(clock),
            feed=feed,
            store=store,
            webchat=webchat,
            channels=(webchat,),
            stock=_stock(home, run, str(settings.agent["sandbox"])),
        )
        staff = hire(ground, tasks)
        upkeep = await keep_up(ground, staff)
        doors = open_doors(ground, staff, upkeep, call_doctor(ground, staff, upkeep))
        yield Rooms(
            store=store,
            feed=feed,
            engine=staff.engine,
            exchange=staff.exchange,
            clerk=staff.clerk,
            delivery=staff.delivery,
            agents=staff.agents,
            intake=staff.intake,
            groups=staff.groups,
            status=upkeep.status,
            metrics=doors.metrics,
            sessions=doors.sessions,
            importing=doors.importing,
            rounds=upkeep.rounds,
            scheduler=staff.scheduler,
            mailroom=staff.mailroom,
            channels=ground.channels,
            sandboxes=ground.stock,
            watch=on_duty(installation(home), run),
            app=doors.app,
        )


def _stock(home: Home, run: str, preferred: str) -> Stock:
    label = installation(home)
    plain = Process(installation=label, run=run, run_dir=home.run_dir / "boxes")
    return Stock([Bubblewrap(installation=label, run=run), plain], preferred)
