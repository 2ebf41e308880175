"""The doctor, with all that a look at the house needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.doctor.examining import Doctor, Terms
from hallporter.doctor.preferences import Reading
from hallporter.doctor.starts import Starts
from hallporter.domain.errors import InvalidSettingsError
from hallporter.settings import Source, changes, environment, listed, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.finding import Setting
    from hallporter.home import Home
    from hallporter.settings import Loaded
    from hallporter.wiring.ground import Ground
    from hallporter.wiring.staff import Staff
    from hallporter.wiring.upkeep import Upkeep


def call_doctor(ground: Ground, staff: Staff, upkeep: Upkeep) -> Doctor:
    async def settings() -> Sequence[Setting]:
        stored = {str(group.folder): group.agent for group in await staff.groups.all()}
        return listed(ground.loaded, stored)

    return Doctor(
        home=ground.home,
        terms=terms_of(ground.loaded),
        clock=ground.clock,
        status=upkeep.status,
        agents=staff.agents,
        starts=Starts(
            groups=staff.groups,
            agent_of=ground.agent_of,
            where_to_change=ground.loaded.where_to_change,
            by_kind=staff.agent_of_kind,
            sandboxes=ground.stock,
            equipment=staff.equipment,
            clock=ground.clock,
            timezone=ground.timezone,
        ),
        sweep=ground.stock.sweep,
        unwatched=lambda: staff.mailroom.unwatched,
        read_settings=lambda: read_settings(ground.home, ground.loaded),
        settings=settings,
    )


def read_settings(home: Home, loaded: Loaded | None = None) -> Reading:
    """The sources as they are now, beside what was `loaded` at the start."""
    try:
        now = load(home.path, environment())
    except InvalidSettingsError as error:
        return Reading(broken=tuple(error.message.splitlines()))
    return Reading(warnings=now.warnings, changed=() if loaded is None else changes(loaded, now))


def terms_of(loaded: Loaded) -> Terms:
    """What a look at the house needs of the settings."""
    settings = loaded.settings
    return Terms(
        database=settings.store.path,
        address=settings.host.address,
        port=settings.host.port,
        zone=settings.host.timezone,
        is_zone_set=loaded.origins["host.timezone"].source is not Source.DEFAULT,
        least_free=settings.host.min_free_disk,
        most_logs=settings.logs.max_size * (settings.logs.keep + 1),
        folders=loaded.named_folders(),
    )
