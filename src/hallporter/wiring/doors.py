"""The doors of the house: the HTTP API and the pages, with the use cases behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import hallporter
from hallporter.api.app import create_app
from hallporter.api.desk import Desk
from hallporter.api.metrics import Metrics
from hallporter.domain.token import digest
from hallporter.home import admin_token
from hallporter.imports.nanoclaw import clear, open_nanoclaw
from hallporter.settings import check_agent
from hallporter.switchboard.importing.importing import Importing
from hallporter.switchboard.importing.moving import Neighbours
from hallporter.switchboard.sessions import Sessions
from hallporter.switchboard.story import Story
from hallporter.switchboard.tokens import Tokens
from hallporter.web.lobby import Lobby
from hallporter.web.routes import routes

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from hallporter.doctor.examining import Doctor
    from hallporter.wiring.ground import Ground
    from hallporter.wiring.staff import Staff
    from hallporter.wiring.upkeep import Upkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """`app` serves them all."""

    app: ASGIApp
    metrics: Metrics
    sessions: Sessions
    importing: Importing


def open_doors(ground: Ground, staff: Staff, upkeep: Upkeep, doctor: Doctor) -> Doors:
    store, clock, new_id = ground.store, ground.clock, ground.new_id
    admin_digest = digest(admin_token(ground.home))
    sessions = Sessions(
        store=store, clock=clock, feed=ground.feed, new_id=new_id, admin_digest=admin_digest
    )
    metrics = Metrics()
    story = Story(store=store)
    importing = _importing(ground, staff)
    desk = Desk(
        intake=staff.intake,
        story=story,
        enclosures=staff.enclosures,
        groups=staff.groups,
        tokens=Tokens(store=store, clock=clock, feed=ground.feed, new_id=new_id),
        sessions=sessions,
        notices=upkeep.notices,
        tasks=staff.tasks,
        forgetting=upkeep.forgetting,
        importing=importing,
        status=upkeep.status,
        metrics=metrics,
        feed=ground.feed,
        clock=clock,
        new_id=new_id,
        web=ground.webchat,
        channel_of=ground.channel_of,
        kind_of=ground.kind_of,
        senders_of=ground.senders_of,
        dismiss=staff.dismiss,
        assistant_name=ground.assistant_name,
        examine=doctor.examine,
        mend=doctor.mend,
        admin_digest=admin_digest,
        version=hallporter.__version__,
    )
    lobby = Lobby(
        intake=staff.intake,
        story=story,
        enclosures=staff.enclosures,
        groups=staff.groups,
        sessions=sessions,
        feed=ground.feed,
        clock=clock,
        new_id=new_id,
        web=ground.webchat,
        notices=upkeep.notices.open,
        answerer_of=ground.answerer_of,
        assistant_name=ground.assistant_name,
        version=hallporter.__version__,
    )
    return Doors(
        app=create_app(desk, routes(lobby)),
        metrics=metrics,
        sessions=sessions,
        importing=importing,
    )


def _importing(ground: Ground, staff: Staff) -> Importing:
    home = ground.home.path
    clear(home)
    return Importing(
        system="NanoClaw",
        open_archive=lambda path, config, stopping: open_nanoclaw(path, config, home, stopping),
        store=ground.store,
        clock=ground.clock,
        new_id=ground.new_id,
        channel_of=ground.channel_of,
        check_agent=check_agent,
        neighbours=Neighbours(
            groups_changed=staff.mailroom.regrouped,
            tasks_changed=staff.mailroom.changed,
            close_warm=staff.close_warm,
            poke=staff.scheduler.poke,
        ),
        assistant_name=ground.assistant_name,
        timezone=ground.timezone,
    )
