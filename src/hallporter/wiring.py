"""The composition root: settings in, a switchboard out, every room joined to its neighbours."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

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
from hallporter.doctor.examining import Doctor, Terms
from hallporter.doctor.preferences import Reading
from hallporter.doctor.starts import Starts
from hallporter.doctor.storage import storage_of
from hallporter.domain.errors import AgentRefusedError, InvalidSettingsError
from hallporter.domain.ids import SANDBOXES
from hallporter.domain.removal import Retention
from hallporter.domain.token import digest
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.home import admin_token, installation
from hallporter.identifiers import IdMaker
from hallporter.imports.nanoclaw import open_nanoclaw
from hallporter.mailroom.room import Mailroom
from hallporter.sandboxes.bubblewrap import Bubblewrap
from hallporter.sandboxes.machine import interpreter
from hallporter.sandboxes.process import Process
from hallporter.sandboxes.stock import Stock
from hallporter.sandboxes.usage import memory_of
from hallporter.sandboxes.watchman import on_duty
from hallporter.settings import Source, changes, check_agent, environment, listed, load
from hallporter.stores.belongings import Belongings
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.media import Media
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.clerk import Clerk
from hallporter.switchboard.commands import Commands
from hallporter.switchboard.delivery import Delivery
from hallporter.switchboard.enclosures import Enclosures
from hallporter.switchboard.exchange import Exchange, House
from hallporter.switchboard.forgetting import Forgetting
from hallporter.switchboard.groups import Groups
from hallporter.switchboard.importing import Importing
from hallporter.switchboard.intake import Intake
from hallporter.switchboard.moving import Neighbours
from hallporter.switchboard.notices import Notices
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.record import Record
from hallporter.switchboard.retention import Sweep
from hallporter.switchboard.rounds import Rounds
from hallporter.switchboard.scheduler import Scheduler
from hallporter.switchboard.scrubbing import Scrubbing
from hallporter.switchboard.sessions import Sessions
from hallporter.switchboard.slash_lines import SlashLines
from hallporter.switchboard.status import Status
from hallporter.switchboard.story import Story
from hallporter.switchboard.tasks import Tasks
from hallporter.switchboard.ticks import Ticks
from hallporter.switchboard.tokens import Tokens
from hallporter.web.lobby import Answerer, Lobby
from hallporter.web.routes import routes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractContextManager

    from starlette.types import ASGIApp

    from hallporter.domain.brief import AgentSettings, LateBlock
    from hallporter.domain.finding import Setting
    from hallporter.domain.group import Group, SenderRule
    from hallporter.domain.ids import ChatId, Folder, Pool
    from hallporter.home import Home
    from hallporter.ports import Agent, Channel, Store
    from hallporter.settings import HostSettings, Loaded, Settings

_PROGRAM_KINDS = ("demo", "command")


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
    rounds: Rounds
    scheduler: Scheduler
    mailroom: Mailroom
    channels: Sequence[Channel]
    sandboxes: Stock
    watch: AbstractContextManager[None]  # over what the sandboxes run
    app: ASGIApp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wishes:
    """What the settings say of a group, and what box that means here."""

    settings: Settings
    stock: Stock

    def agent(self, group: Group) -> AgentSettings:
        return self.settings.agent_for(group.folder, group.agent)

    def senders(self, group: Group) -> SenderRule | None:
        return self.settings.senders_for(group.folder, group.senders)

    def kind(self, group: Group) -> str:
        return self.settings.kind_for(group.folder, group.agent)

    def answerer(self, group: Group) -> Answerer:
        kind = self.kind(group)
        try:
            sandbox = self.stock.named(self.agent(group).sandbox).name
        except AgentRefusedError as error:
            return Answerer(kind=kind, sandbox="", problem=error.message)
        return Answerer(kind=kind, sandbox=sandbox)


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
    wishes = _Wishes(settings=settings, stock=stock)
    channel_of = _owner_among(channels)

    async def on_late(block: LateBlock) -> None:
        await exchange.late(block)

    def close_warm(chat: ChatId) -> None:
        tasks.create_task(agents.forget(chat), name=f"forget:{chat}")

    def tasks_changed(folder: Folder) -> None:
        mailroom.changed(folder)

    def groups_changed(folder: Folder) -> None:
        mailroom.regrouped(folder)

    async def dismiss(group: Group) -> None:
        engine.signal(group.chat, "stop")
        await agents.evict(group.chat)

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
        scheduler = Scheduler(store=store, engine=engine, clock=clock, changed=tasks_changed)
        standing = Tasks(
            store=store,
            engine=engine,
            clock=clock,
            new_id=new_id,
            timezone=settings.host.timezone,
            poke=scheduler.poke,
            changed=tasks_changed,
        )
        record = Record(feed=feed, clock=clock)
        ticks = Ticks(
            engine=engine,
            outbound=outbound,
            record=record,
            clock=clock,
            new_id=new_id,
            pause=standing.pause,
        )
        clerk = Clerk(
            engine=engine,
            outbound=outbound,
            record=record,
            ticks=ticks,
            clock=clock,
            new_id=new_id,
        )
        equipment = Equipment(
            premises=Premises(
                home=home.path,
                source=_source(home),
                elsewhere=_database_files(settings.store.path),
            ),
            python=interpreter(),
            max_output_size=settings.host.max_output_size,
        )
        agents = SandboxedAgents(
            sandbox_for=stock.named,
            equipment=equipment,
            clock=clock,
            max_live=settings.host.max_concurrent_containers,
            on_late=on_late,
        )
        groups = Groups(
            store=store,
            clock=clock,
            channel_of=channel_of,
            check_agent=check_agent,
            refuse_fixed=loaded.refuse_fixed,
            refuse_fixed_senders=loaded.refuse_fixed_senders,
            close_warm=close_warm,
            changed=groups_changed,
            assistant_name=name,
        )
        enclosures = Enclosures(store=store, shelf=Media(home.path), new_id=new_id)
        mailroom = Mailroom(
            data=home.path / "data",
            store=store,
            commands=Commands(
                store=store,
                tasks=standing,
                groups=groups,
                outbound=outbound,
                enclosures=enclosures,
                channels=channels,
                clock=clock,
            ),
            clock=clock,
            new_id=new_id,
        )
        exchange = Exchange(
            store=store,
            clerk=clerk,
            agents=_by_kind(agents),
            agent_of=wishes.agent,
            channel_of=channel_of,
            mail=mailroom,
            clock=clock,
            house=House(assistant_name=name, timezone=settings.host.timezone),
        )
        slash_lines = SlashLines(
            engine=engine,
            outbound=outbound,
            clerk=clerk,
            clock=clock,
            agent_of=wishes.agent,
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
            senders_of=wishes.senders,
        )
        notices = Notices(
            store=store,
            outbound=outbound,
            channel_of=channel_of,
            clock=clock,
            free_disk=lambda: shutil.disk_usage(home.path).free,
            min_free_disk=settings.host.min_free_disk,
        )
        status = Status(
            store=store,
            engine=engine,
            channels=channels,
            agents=agents,
            notices=notices.open,
            sandboxes=stock.report,
            memory_of=memory_of,
            storage=lambda: storage_of(home, settings.store.path),
            clock=clock,
        )
        doctor = Doctor(
            home=home,
            terms=terms_of(loaded),
            clock=clock,
            status=status,
            agents=agents,
            starts=Starts(
                groups=groups,
                agent_of=wishes.agent,
                where_to_change=loaded.where_to_change,
                by_kind=_by_kind(agents),
                sandboxes=stock,
                equipment=equipment,
                clock=clock,
                timezone=settings.host.timezone,
            ),
            sweep=stock.sweep,
            unwatched=lambda: mailroom.unwatched,
            read_settings=lambda: read_settings(home, loaded),
            settings=_settings_of(groups, loaded),
        )
        belongings = Belongings(home.path)
        scrubbing = Scrubbing(store=store, clock=clock)
        forgetting = Forgetting(
            store=store,
            engine=engine,
            feed=feed,
            clock=clock,
            evict=agents.evict,
            belongings=belongings,
            scrubbing=scrubbing,
            changed=groups_changed,
        )
        await _catch_up(store, notices, forgetting)
        admin_digest = digest(admin_token(home))
        sessions = Sessions(store=store, clock=clock, new_id=new_id, admin_digest=admin_digest)
        desk = Desk(
            intake=intake,
            story=Story(store=store),
            enclosures=enclosures,
            groups=groups,
            tokens=Tokens(store=store, clock=clock, new_id=new_id),
            sessions=sessions,
            notices=notices,
            tasks=standing,
            forgetting=forgetting,
            importing=Importing(
                system="NanoClaw",
                open_archive=lambda path, config: open_nanoclaw(path, config, home.path),
                store=store,
                clock=clock,
                new_id=new_id,
                channel_of=channel_of,
                check_agent=check_agent,
                neighbours=Neighbours(
                    groups_changed=groups_changed,
                    tasks_changed=tasks_changed,
                    close_warm=close_warm,
                    poke=scheduler.poke,
                ),
                assistant_name=name,
                timezone=settings.host.timezone,
            ),
            status=status,
            metrics=Metrics(),
            feed=feed,
            clock=clock,
            new_id=new_id,
            web=webchat,
            channel_of=channel_of,
            kind_of=wishes.kind,
            senders_of=wishes.senders,
            dismiss=dismiss,
            assistant_name=name,
            examine=doctor.examine,
            mend=doctor.mend,
            admin_digest=admin_digest,
            version=hallporter.__version__,
        )
        lobby = Lobby(
            intake=intake,
            story=desk.story,
            enclosures=enclosures,
            groups=groups,
            sessions=sessions,
            feed=feed,
            clock=clock,
            new_id=new_id,
            web=webchat,
            notices=notices.open,
            answerer_of=wishes.answerer,
            assistant_name=name,
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
            metrics=desk.metrics,
            rounds=Rounds(
                look=notices.look,
                sweep=Sweep(
                    store=store,
                    clock=clock,
                    retention=_retention(settings),
                    logs=belongings,
                    enclosures=enclosures,
                    notices=notices,
                    scrubbing=scrubbing,
                ).run_if_due,
                feed=feed,
                clock=clock,
            ),
            scheduler=scheduler,
            mailroom=mailroom,
            channels=channels,
            sandboxes=stock,
            watch=on_duty(installation(home), run),
            sessions=sessions,
            app=create_app(desk, routes(lobby)),
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


def _settings_of(groups: Groups, loaded: Loaded) -> Callable[[], Awaitable[Sequence[Setting]]]:
    async def all_settings() -> Sequence[Setting]:
        stored = {str(group.folder): group.agent for group in await groups.all()}
        return listed(loaded, stored)

    return all_settings


def _owner_among(channels: Sequence[Channel]) -> Callable[[ChatId], Channel | None]:
    def channel_of(chat: ChatId) -> Channel | None:
        return next((channel for channel in channels if channel.owns(chat)), None)

    return channel_of


async def _catch_up(store: SqliteStore, notices: Notices, forgetting: Forgetting) -> None:
    """On what the start has brought about, and what an earlier host could not finish."""
    if store.upgrade is not None:
        await notices.migrated(store.upgrade.schema, store.upgrade.copy.name)
    await forgetting.resume()


def _source(home: Home) -> Path:
    return readable_source(Path(hallporter.__file__).parents[1], home.run_dir / "source")


def _database_files(database: Path) -> tuple[Path, ...]:
    return tuple(database.with_name(f"{database.name}{part}") for part in ("", "-wal", "-shm"))


def _stock(home: Home, run: str, preferred: str) -> Stock:
    label = installation(home)
    plain = Process(installation=label, run=run, run_dir=home.run_dir / "boxes")
    return Stock([Bubblewrap(installation=label, run=run), plain], preferred)


def _pool_sizes(host: HostSettings) -> Callable[[Pool], int]:
    def size(pool: Pool) -> int:
        return host.max_concurrent_containers if pool == SANDBOXES else host.max_remote

    return size


def _retention(settings: Settings) -> Retention:
    kept = settings.retention
    return Retention(
        messages=timedelta(days=kept.messages_days) or None,
        logs=timedelta(days=kept.logs_days) or None,
        media=timedelta(days=kept.media_days) or None,
        hour=kept.hour,
        zone=ZoneInfo(settings.host.timezone),
    )


def _by_kind(agents: SandboxedAgents) -> Callable[[str], Agent]:
    def host_of(kind: str) -> Agent:
        if kind in _PROGRAM_KINDS:
            return agents
        known = " or ".join(f"'{one}'" for one in _PROGRAM_KINDS)
        message = f"agents of kind '{kind}' are not part of this version: use {known}"
        raise AgentRefusedError(message, kind=kind, setting="kind")

    return host_of
