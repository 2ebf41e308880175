"""Those who look after the house: what needs someone, what is kept, what goes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hallporter.doctor.storage import storage_of
from hallporter.domain.removal import Retention
from hallporter.sandboxes.usage import memory_of
from hallporter.stores.belongings import Belongings
from hallporter.switchboard.forgetting import Forgetting
from hallporter.switchboard.notices import Notices
from hallporter.switchboard.retention import Sweep
from hallporter.switchboard.rounds import Rounds
from hallporter.switchboard.scrubbing import Scrubbing
from hallporter.switchboard.status import Status

if TYPE_CHECKING:
    from hallporter.settings import Settings
    from hallporter.wiring.ground import Ground
    from hallporter.wiring.staff import Staff


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What the operator is told, and what is done without being asked."""

    notices: Notices
    status: Status
    forgetting: Forgetting
    rounds: Rounds


async def keep_up(ground: Ground, staff: Staff) -> Upkeep:
    """With what an earlier host could not finish already done."""
    store, clock, home = ground.store, ground.clock, ground.home
    notices = Notices(
        store=store,
        outbound=staff.outbound,
        channel_of=ground.channel_of,
        clock=clock,
        free_disk=lambda: shutil.disk_usage(home.path).free,
        min_free_disk=ground.settings.host.min_free_disk,
    )
    belongings = Belongings(home.path)
    scrubbing = Scrubbing(store=store, clock=clock)
    forgetting = Forgetting(
        store=store,
        engine=staff.engine,
        feed=ground.feed,
        clock=clock,
        evict=staff.agents.evict,
        belongings=belongings,
        scrubbing=scrubbing,
        changed=staff.mailroom.regrouped,
    )
    sweep = Sweep(
        store=store,
        clock=clock,
        retention=_retention(ground.settings),
        logs=belongings,
        enclosures=staff.enclosures,
        notices=notices,
        scrubbing=scrubbing,
    )
    if store.upgrade is not None:
        await notices.migrated(store.upgrade.schema, store.upgrade.copy.name)
    await forgetting.resume()
    return Upkeep(
        notices=notices,
        status=Status(
            store=store,
            check_store=store.check,
            engine=staff.engine,
            channels=ground.channels,
            agents=staff.agents,
            notices=notices.open,
            sandboxes=ground.stock.report,
            memory_of=memory_of,
            storage=lambda: storage_of(home, ground.settings.store.path),
            clock=clock,
        ),
        forgetting=forgetting,
        rounds=Rounds(look=notices.look, sweep=sweep.run_if_due, feed=ground.feed, clock=clock),
    )


def _retention(settings: Settings) -> Retention:
    kept = settings.retention
    return Retention(
        messages=timedelta(days=kept.messages_days) or None,
        logs=timedelta(days=kept.logs_days) or None,
        media=timedelta(days=kept.media_days) or None,
        hour=kept.hour,
        zone=ZoneInfo(settings.host.timezone),
    )
