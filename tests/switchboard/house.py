"""A whole switchboard on a real database, with a scripted agent and a channel in memory."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from hallporter.domain.brief import AgentSettings
from hallporter.domain.ids import ChatId
from hallporter.domain.message import Inbound
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.delivery import Delivery
from hallporter.switchboard.exchange import Exchange
from hallporter.switchboard.exchange import House as HouseFacts
from hallporter.switchboard.groups import Groups, NewGroup
from hallporter.switchboard.intake import Accepted, Intake
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.slash_lines import SlashLines
from hallporter.switchboard.story import Story
from tests.fakes.agent import ScriptedAgent
from tests.fakes.channel import FakeChannel
from tests.fakes.clerk import make_clerk
from tests.fakes.clock import FakeClock
from tests.fakes.ids import counting_id
from tests.fakes.mail import FakeMail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from hallporter.domain.chat import Chat
    from hallporter.domain.fate import Fate
    from hallporter.domain.group import Group
    from hallporter.domain.ids import Pool
    from hallporter.domain.message import Message
    from hallporter.switchboard.clerk import Clerk

CHAT = ChatId("fake:family")
PATIENCE = 5.0  # seconds
_STEPS = 50  # of the event loop: from a wake-up to its turn it takes a few

SETTINGS = AgentSettings(
    kind="demo",
    sandbox="process",
    timeout=timedelta(minutes=30),
    idle_timeout=timedelta(minutes=30),
)


@dataclass(kw_only=True)
class House:
    """Everything a test may want to touch."""

    store: SqliteStore
    engine: EmbeddedEngine
    intake: Intake
    clerk: Clerk
    exchange: Exchange
    delivery: Delivery
    groups: Groups
    story: Story
    feed: MemoryFeed
    agent: ScriptedAgent
    channel: FakeChannel
    mail: FakeMail
    clock: FakeClock
    settings: list[AgentSettings]

    async def register(self, chat: ChatId = CHAT, *, trigger: str | None = None) -> Group:
        folder = chat.partition(":")[2]
        new = NewGroup(
            chat=chat,
            name=folder.title(),
            folder=folder,
            trigger=trigger,
            requires_trigger=trigger is not None,
        )
        return await self.groups.add(new)

    async def hear(
        self, text: str, chat: ChatId = CHAT, *, sender: str = "Ada", ext_id: str = ""
    ) -> Message:
        return (await self.accept(text, chat, sender=sender, ext_id=ext_id)).message

    async def accept(
        self, text: str, chat: ChatId = CHAT, *, sender: str = "Ada", ext_id: str = ""
    ) -> Accepted:
        self.clock.tick()
        inbound = Inbound(
            chat=chat,
            ext_id=ext_id or counting_id("x"),
            sender=sender,
            sender_name=sender,
            text=text,
            sent_at=self.clock.now(),
        )
        return await self.intake.accept(inbound)

    async def chat(self, chat: ChatId = CHAT) -> Chat:
        row = await self.store.read(lambda tx: tx.chats.get(chat))
        assert row is not None
        return row

    async def fate(self, message: Message) -> Fate:
        return (await self.story.fates(message.id))[0]

    async def state(self, message: Message) -> str:
        return (await self.fate(message)).state

    async def replies(self, chat: ChatId = CHAT) -> list[str]:
        """What the chat was told, in order."""
        page = await self.story.page(chat, after=None, limit=200)
        return [message.text for message in page.messages if message.is_bot]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for something that happens by itself; what happens is what the feed tells."""
        async with asyncio.timeout(PATIENCE), self.feed.subscribe(None) as events:
            while True:
                result = condition()
                if asyncio.iscoroutine(result):
                    result = await result
                if result:
                    return
                await anext(events)

    async def settled(self, message: Message, state: str) -> Fate:
        """The message's fate, once it has reached a state."""

        async def reached() -> bool:
            return await self.state(message) == state

        await self.until(reached)
        return await self.fate(message)

    async def a_while(self) -> None:
        """What was set off had its chance, or nothing could ever be seen to happen; a turn that
        runs may go on."""
        for _ in range(_STEPS):
            await asyncio.sleep(0)
            await self.store.read(lambda tx: tx.chats.woken())

    async def idle(self) -> None:
        """No turn runs any more, and none is about to begin."""
        async with asyncio.timeout(PATIENCE):
            await self.a_while()
            while self.engine.health().running:  # noqa: ASYNC110  the engine tells nobody
                await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def open_house(
    path: Path,
    *,
    slots: int = 5,
    clock: FakeClock | None = None,
    is_serving: bool = True,
) -> AsyncIterator[House]:
    """The switchboard as wiring builds it; `is_serving` off leaves turns and sends to the test."""
    clock = clock or FakeClock()
    agent = ScriptedAgent()
    channel = FakeChannel()
    mail = FakeMail()
    feed = MemoryFeed()
    new_id = counting_id
    settings = [SETTINGS]

    def channel_of(chat: ChatId) -> FakeChannel | None:
        return channel if channel.owns(chat) else None

    def pool_size(_pool: Pool) -> int:
        return slots

    async with open_store(path / "hallporter.db", clock) as store, asyncio.TaskGroup() as tasks:
        closing: list[ChatId] = []
        delivery = Delivery(store=store, channel_of=channel_of, feed=feed, clock=clock)
        engine = EmbeddedEngine(store=store, clock=clock, pool_size=pool_size)
        outbound = Outbound(
            channel_of=channel_of,
            wake_delivery=delivery.wake,
            feed=feed,
            clock=clock,
            new_id=new_id,
            speaker="Andy",
        )
        clerk = make_clerk(store=store, engine=engine, outbound=outbound, feed=feed, clock=clock)
        slash_lines = SlashLines(
            engine=engine,
            outbound=outbound,
            clerk=clerk,
            clock=clock,
            agent_of=lambda _group: settings[-1],
            close_warm=agent.forgotten.append,
            assistant_name="Andy",
        )
        intake = Intake(
            store=store,
            engine=engine,
            feed=feed,
            clock=clock,
            new_id=new_id,
            channel_of=channel_of,
            slash_lines=slash_lines,
            senders_of=lambda group: group.senders,
        )
        exchange = Exchange(
            store=store,
            clerk=clerk,
            agents=lambda _kind: agent,
            agent_of=lambda _group: settings[-1],
            channel_of=channel_of,
            mail=mail,
            clock=clock,
            house=HouseFacts(assistant_name="Andy", timezone="Europe/Berlin"),
        )
        groups = Groups(
            store=store,
            clock=clock,
            channel_of=channel_of,
            check_agent=lambda values: values,
            refuse_fixed=lambda _folder, _values: None,
            refuse_fixed_senders=lambda _folder, _change: None,
            changed=lambda _folder: None,
            close_warm=closing.append,
            assistant_name="Andy",
        )
        await channel.connect(intake)
        serving = []
        if is_serving:
            await store.write(clerk.recover)
            serving = [
                tasks.create_task(engine.serve(exchange.run)),
                tasks.create_task(delivery.serve()),
            ]
        yield House(
            store=store,
            engine=engine,
            intake=intake,
            clerk=clerk,
            exchange=exchange,
            delivery=delivery,
            groups=groups,
            story=Story(store=store),
            feed=feed,
            agent=agent,
            channel=channel,
            mail=mail,
            clock=clock,
            settings=settings,
        )
        for task in serving:
            task.cancel()
