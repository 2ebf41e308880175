"""The front of the house for tests: the real app on a real database, nobody behind the agents."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import uvicorn

from hallporter.api.app import create_app
from hallporter.api.desk import Desk
from hallporter.api.metrics import Metrics
from hallporter.channels.webchat import WebChat
from hallporter.domain.brief import AgentSettings, Block
from hallporter.domain.errors import InvalidSettingsError, RefusedError
from hallporter.domain.finding import Chmod, Examination, good, problem
from hallporter.domain.happening import AccessChanged
from hallporter.domain.ids import ChatId
from hallporter.domain.token import digest
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.imports.nanoclaw import open_nanoclaw
from hallporter.stores.belongings import Belongings
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.media import Media
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.clerk import Clerk
from hallporter.switchboard.enclosures import Enclosures
from hallporter.switchboard.forgetting import Forgetting
from hallporter.switchboard.groups import Groups
from hallporter.switchboard.importing.importing import Importing
from hallporter.switchboard.importing.moving import Neighbours
from hallporter.switchboard.intake import Intake
from hallporter.switchboard.notices import Notices
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.progress import Progress
from hallporter.switchboard.scheduler import Scheduler
from hallporter.switchboard.scrubbing import Scrubbing
from hallporter.switchboard.sessions import Sessions
from hallporter.switchboard.slash_lines import SlashLines
from hallporter.switchboard.status import LiveAgentInfo, Status, Storage
from hallporter.switchboard.story import Story
from hallporter.switchboard.tasks import Tasks
from hallporter.switchboard.tokens import Tokens
from tests.fakes.channel import FakeChannel
from tests.fakes.clerk import make_clerk
from tests.fakes.clock import FakeClock
from tests.fakes.ids import counting_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from fastapi import FastAPI

    from hallporter.domain.group import Group
    from hallporter.ports import Channel
    from hallporter.switchboard.progress import Opened

ADMIN = "hp_admin"
STORAGE = Storage(database=1 << 20, groups=2048, logs=512, errors=1, free=1 << 30, total=4 << 30)
MAIN = ChatId("web:main")
PATIENCE = 5.0  # seconds


@dataclass(slots=True)
class Residents:
    """`status.LiveAgents`."""

    agents: list[LiveAgentInfo] = field(default_factory=list)

    def live(self) -> list[LiveAgentInfo]:
        return self.agents


class StuckBelongings(Belongings):
    """A home in which some things cannot be removed at once."""

    def __init__(self, home: Path, stuck: list[RefusedError]) -> None:
        super().__init__(home)
        self._stuck = stuck

    async def destroy(self) -> int:
        if self._stuck:
            raise self._stuck.pop()
        return await super().destroy()


@dataclass(kw_only=True)
class Front:
    """Everything a test may want to touch."""

    app: FastAPI
    desk: Desk
    store: SqliteStore
    feed: MemoryFeed
    engine: EmbeddedEngine
    clerk: Clerk
    scheduler: Scheduler
    clock: FakeClock
    web: WebChat
    residents: Residents
    dismissed: list[str]  # of groups whose files stay
    evicted: list[ChatId]
    stuck: list[RefusedError]  # what the next removals of files meet

    def client(self, token: str = ADMIN, **headers: str) -> httpx.AsyncClient:
        if token:
            headers["Authorization"] = f"Bearer {token}"
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://house", headers=headers)

    async def token(self, role: str = "consumer_app", *, chat: str | None = MAIN) -> str:
        made = await self.desk.tokens.create(role=role, subject="alice", chat=chat)
        return made.secret

    async def register(self, chat: str = MAIN, folder: str = "main", **more: object) -> None:
        body = {"chat": chat, "name": folder.title(), "folder": folder, "requires_trigger": False}
        async with self.client() as operator:
            answer = await operator.post("/api/groups", json={**body, **more})
        assert answer.status_code == 201, answer.text

    async def say(self, text: str, chat: str = MAIN, **more: str) -> str:
        async with self.client() as operator:
            answer = await operator.post(f"/api/chats/{chat}/messages", json={"text": text, **more})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def open_turn(self, chat: ChatId = MAIN) -> Opened:
        self.clock.tick()
        opened = await self.store.write(lambda tx: self.clerk.open(tx, chat))
        assert opened is not None
        return opened

    async def answer(self, opened: Opened, text: str | None) -> None:
        self.clock.tick()
        block = Block(
            is_error=False,
            text=text,
            session_id=None,
            error="",
            through=opened.batch.through,
            idle=True,
        )
        await self.store.write(lambda tx: self.clerk.block(tx, opened.turn, block, Progress()))


@contextlib.asynccontextmanager
async def open_front(path: Path, *, feed: MemoryFeed | None = None) -> AsyncIterator[Front]:
    clock = FakeClock()
    feed = feed or MemoryFeed()
    web = WebChat(feed=feed)
    other = FakeChannel()
    residents = Residents()
    dismissed: list[str] = []
    evicted: list[ChatId] = []
    stuck: list[RefusedError] = []

    def channel_of(chat: ChatId) -> Channel | None:
        channels: tuple[Channel, ...] = (web, other)
        return next((channel for channel in channels if channel.owns(chat)), None)

    def agent_of(group: Group) -> AgentSettings:
        return AgentSettings(
            kind=str(group.agent.get("kind", "demo")),
            sandbox="process",
            timeout=timedelta(minutes=30),
            idle_timeout=timedelta(minutes=30),
        )

    def check_agent(values: Mapping[str, object]) -> Mapping[str, object]:
        if values.get("kind", "demo") not in ("demo", "command"):
            raise InvalidSettingsError("agent.kind is 'demo' or 'command'", field="kind")
        return values

    async def dismiss(group: Group) -> None:
        dismissed.append(group.folder)

    async def examine() -> Examination:
        fix = Chmod(path=path, mode=0o600)
        return Examination(findings=(problem("home", ".env is open", "close it", fix),))

    async def mend() -> Examination:
        return Examination(findings=(good("home", "closed"),))

    async def evict(chat: ChatId) -> None:
        evicted.append(chat)

    async with open_store(path / "hallporter.db", clock) as store:
        engine = EmbeddedEngine(store=store, clock=clock, pool_size=lambda _pool: 5)
        outbound = Outbound(
            channel_of=channel_of,
            wake_delivery=lambda _chat: None,
            feed=feed,
            clock=clock,
            new_id=counting_id,
            speaker="Andy",
        )
        clerk = make_clerk(store=store, engine=engine, outbound=outbound, feed=feed, clock=clock)
        slash_lines = SlashLines(
            engine=engine,
            outbound=outbound,
            clerk=clerk,
            clock=clock,
            agent_of=agent_of,
            close_warm=lambda _chat: None,
            assistant_name="Andy",
        )
        intake = Intake(
            store=store,
            engine=engine,
            feed=feed,
            clock=clock,
            new_id=counting_id,
            channel_of=channel_of,
            slash_lines=slash_lines,
            senders_of=lambda group: group.senders,
        )
        groups = Groups(
            store=store,
            clock=clock,
            channel_of=channel_of,
            check_agent=check_agent,
            refuse_fixed=lambda _folder, _values: None,
            refuse_fixed_senders=lambda _folder, _change: None,
            changed=lambda _folder: feed.publish(AccessChanged()),
            close_warm=lambda _chat: None,
            assistant_name="Andy",
        )
        notices = Notices(
            store=store,
            outbound=outbound,
            channel_of=channel_of,
            clock=clock,
            free_disk=lambda: 0,
            min_free_disk=1,
        )
        status = Status(
            store=store,
            check_store=store.check,
            engine=engine,
            channels=[web],
            agents=residents,
            notices=notices.open,
            sandboxes=list,
            memory_of=lambda _pid: 64 << 20,
            storage=lambda: STORAGE,
            clock=clock,
        )
        scheduler = Scheduler(store=store, engine=engine, clock=clock, changed=lambda _folder: None)
        desk = Desk(
            intake=intake,
            story=Story(store=store),
            enclosures=Enclosures(store=store, shelf=Media(path), new_id=counting_id),
            groups=groups,
            tokens=Tokens(store=store, clock=clock, feed=feed, new_id=counting_id),
            sessions=Sessions(
                store=store,
                clock=clock,
                feed=feed,
                new_id=counting_id,
                admin_digest=digest(ADMIN),
            ),
            notices=notices,
            tasks=Tasks(
                store=store,
                engine=engine,
                clock=clock,
                new_id=counting_id,
                timezone="Europe/Berlin",
                poke=scheduler.poke,
                changed=lambda _folder: None,
            ),
            forgetting=Forgetting(
                store=store,
                engine=engine,
                feed=feed,
                clock=clock,
                evict=evict,
                belongings=StuckBelongings(path, stuck),
                scrubbing=Scrubbing(store=store, clock=clock),
                changed=lambda _folder: None,
            ),
            importing=Importing(
                system="NanoClaw",
                open_archive=lambda source, config, stopping: open_nanoclaw(
                    source, config, path, stopping
                ),
                store=store,
                clock=clock,
                new_id=counting_id,
                channel_of=channel_of,
                check_agent=check_agent,
                neighbours=Neighbours(
                    groups_changed=lambda _folder: None,
                    tasks_changed=lambda _folder: None,
                    close_warm=lambda _chat: None,
                    poke=scheduler.poke,
                ),
                assistant_name="Andy",
                timezone="Europe/Berlin",
            ),
            status=status,
            metrics=Metrics(),
            feed=feed,
            clock=clock,
            new_id=counting_id,
            web=web,
            channel_of=channel_of,
            kind_of=lambda group: agent_of(group).kind,
            senders_of=lambda group: group.senders,
            dismiss=dismiss,
            assistant_name="Andy",
            examine=examine,
            mend=mend,
            admin_digest=digest(ADMIN),
            version="9.9.9",
        )
        await web.connect(intake)
        yield Front(
            app=create_app(desk),
            desk=desk,
            store=store,
            feed=feed,
            engine=engine,
            clerk=clerk,
            scheduler=scheduler,
            clock=clock,
            web=web,
            residents=residents,
            dismissed=dismissed,
            evicted=evicted,
            stuck=stuck,
        )


@contextlib.asynccontextmanager
async def served(front: Front) -> AsyncIterator[str]:
    """The same app on a real server; the URL."""
    config = uvicorn.Config(front.app, port=0, log_config=None, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server._serve())
        async with asyncio.timeout(PATIENCE):
            while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
                await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            front.feed.close()
            server.should_exit = True
            await serving
