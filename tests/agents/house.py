"""A whole switchboard on a real database, with real programs for agents."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hallporter.domain.brief import AgentSettings, LateBlock
from hallporter.domain.fate import Fate
from hallporter.domain.ladder import RUNGS
from hallporter.domain.message import Message
from hallporter.switchboard.exchange import Exchange
from hallporter.switchboard.exchange import House as HouseFacts
from tests.agents.room import PATIENCE, Room, make_agents, marked
from tests.sandboxes import boxes
from tests.switchboard.house import House, open_house


@dataclass(kw_only=True)
class RealHouse:
    """The switchboard of tests/switchboard, and the room its agents live in."""

    house: House
    room: Room

    def employ(self, settings: AgentSettings) -> None:
        """From the next turn on."""
        self.house.settings.append(settings)

    async def hear(self, text: str) -> Message:
        return await self.house.hear(text)

    async def replies(self) -> list[str]:
        return await self.house.replies()

    async def settled(self, message: Message, state: str) -> Fate:
        async with asyncio.timeout(PATIENCE), self.house.feed.subscribe(None) as events:
            while await self.house.state(message) != state:
                await anext(events)
        return await self.house.fate(message)

    async def told(self) -> str:
        """The only thing the chat has been told, once it has."""
        async with asyncio.timeout(PATIENCE), self.house.feed.subscribe(None) as events:
            while not (replies := await self.replies()):
                await anext(events)
        (reply,) = replies
        return reply

    async def why(self, message: Message) -> str:
        """Why the message's last turn ended as it did."""
        turn = (await self.house.fate(message)).turn
        return "" if turn is None else turn.why

    async def idle(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.house.engine.health().running:  # noqa: ASYNC110  no event tells of it
                await asyncio.sleep(0)

    async def try_again(self, attempts: int) -> None:
        """Let the time pass until the next attempt, `attempts` having failed."""
        await self.idle()
        self.house.clock.advance(RUNGS[attempts - 1])


@contextlib.asynccontextmanager
async def open_real_house(path: Path, *, sandbox: str = "process") -> AsyncIterator[RealHouse]:
    """Open, with an orderly end: nothing of it is left on the machine."""
    installation = secrets.token_hex(4)
    late: list[LateBlock] = []
    box = boxes.make(sandbox, installation, path / "run")
    async with open_house(path, is_serving=False) as house, asyncio.TaskGroup() as tasks:
        agents, premises = make_agents(path / "home", box, clock=house.clock, late=late)
        exchange = Exchange(
            store=house.store,
            clerk=house.clerk,
            agents=lambda _kind: agents,
            agent_of=lambda _group: house.settings[-1],
            channel_of=lambda chat: house.channel if house.channel.owns(chat) else None,
            mail=house.mail,
            clock=house.clock,
            house=HouseFacts(assistant_name="Andy", timezone="Europe/Berlin"),
        )
        living = tasks.create_task(agents.serve(), name="agents")
        serving = [
            tasks.create_task(house.engine.serve(exchange.run), name="engine"),
            tasks.create_task(house.delivery.serve(), name="delivery"),
        ]
        await house.register()
        try:
            yield RealHouse(
                house=house,
                room=Room(agents=agents, installation=installation, premises=premises, late=late),
            )
        finally:
            for task in serving:
                task.cancel()
            await asyncio.wait(serving)
            agents.close()
            async with asyncio.timeout(PATIENCE):
                await living
    assert not marked(installation)
