"""The clerk as wiring makes him, for the houses of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.switchboard.clerk import Clerk
from hallporter.switchboard.record import Record
from hallporter.switchboard.tasks import Tasks
from hallporter.switchboard.ticks import Ticks
from tests.fakes.ids import counting_id

if TYPE_CHECKING:
    from hallporter.ports import Clock, Engine, Feed, Store
    from hallporter.switchboard.outbound import Outbound


def make_clerk(
    *, store: Store, engine: Engine, outbound: Outbound, feed: Feed, clock: Clock
) -> Clerk:
    tasks = Tasks(
        store=store,
        engine=engine,
        clock=clock,
        new_id=counting_id,
        timezone="UTC",
        poke=lambda: None,
        changed=lambda _folder: None,
    )
    record = Record(feed=feed, clock=clock)
    ticks = Ticks(
        engine=engine,
        outbound=outbound,
        record=record,
        clock=clock,
        new_id=counting_id,
        pause=tasks.pause,
    )
    return Clerk(
        engine=engine,
        outbound=outbound,
        record=record,
        ticks=ticks,
        clock=clock,
        new_id=counting_id,
    )
