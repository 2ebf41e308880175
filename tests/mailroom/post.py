"""A mailroom on real files and a real database, and an agent's hand in its folders."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hallporter.domain.chat import ChatSeen
from hallporter.domain.ids import ChatId, Folder
from hallporter.engine.embedded import EmbeddedEngine
from hallporter.mailroom.pace import Rate
from hallporter.mailroom.quarantine import REASON
from hallporter.mailroom.room import Mailroom
from hallporter.settings import check_agent
from hallporter.stores.feed import MemoryFeed
from hallporter.stores.media import Media
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.commands import Asked, Commands
from hallporter.switchboard.enclosures import Enclosures
from hallporter.switchboard.groups import Groups, NewGroup
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.tasks import NewTask, Tasks
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import FakeClock
from tests.fakes.ids import counting_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from inotify_simple import INotify

    from hallporter.domain.command import Carried
    from hallporter.domain.group import Group
    from hallporter.domain.task import Task

MAIN, FAMILY, WORK, STRANGER = map(Folder, ("main", "family", "work", "stranger"))
LIFTED = Rate(per_second=1_000_000, burst=1_000_000)
PATIENCE = 10.0  # seconds
A_MOMENT = 0.002  # seconds between looks: files tell nobody


def chat_of(folder: str) -> ChatId:
    return ChatId(f"fake:{folder}")


@dataclass(kw_only=True)
class Post:
    """Everything a test may want to touch."""

    data: Path
    store: SqliteStore
    commands: Commands
    tasks: Tasks
    groups: Groups
    room: Mailroom
    channel: FakeChannel
    clock: FakeClock
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def box(self, folder: str, name: str) -> Path:
        return self.data / "ipc" / folder / name

    def ask(self, folder: str, request: object, *, box: str = "", name: str = "") -> str:
        """As an agent does it: written aside, then renamed in."""
        kind = request.get("type") if isinstance(request, dict) else None
        place = self.box(folder, box or ("messages" if kind == "message" else "tasks"))
        name = name or f"{next(self._numbers):06d}.json"
        aside = place / f"{name}.tmp"
        aside.write_bytes(request if isinstance(request, bytes) else json.dumps(request).encode())
        aside.rename(place / name)
        return name

    def result(self, folder: str, name: str) -> dict[str, Any] | None:
        try:
            told = json.loads((self.box(folder, "results") / name).read_bytes())
        except (FileNotFoundError, PermissionError):
            return None
        assert isinstance(told, dict)
        return told

    async def answer(self, folder: str, request: object, *, box: str = "") -> dict[str, Any]:
        """What an agent reads in `results/` after it has asked."""
        name = self.ask(folder, request, box=box)
        await until(lambda: self.result(folder, name) is not None)
        told = self.result(folder, name)
        assert told is not None
        return told

    def put_aside(self) -> dict[str, str]:
        """What lies in `errors/`, with its reason."""
        errors = self.data / "ipc" / "errors"
        names = sorted(names_in(errors))
        return {
            name: (errors / f"{name}{REASON}").read_text().rpartition("\nfolder: ")[0]
            for name in names
            if not name.endswith(REASON)
        }

    async def quiet(self) -> None:
        """Nothing is left to be carried out."""
        await until(lambda: not self.lying() and not self.claimed())

    def lying(self) -> list[str]:
        folders = [name for name in names_in(self.data / "ipc") if name != "errors"]
        return [
            name
            for folder in folders
            for box in ("messages", "tasks")
            for name in names_in(self.box(folder, box))
            if name.endswith(".json") and not name.startswith(".")
        ]

    def claimed(self) -> list[str]:
        claims = self.data / "claims"
        return [name for folder in names_in(claims) for name in names_in(claims / folder)]

    def snapshot(self, folder: str, name: str) -> Any:
        return json.loads((self.data / "ipc" / folder / name).read_bytes())

    async def said(self, chat: str) -> list[str]:
        rows = await self.store.read(lambda tx: tx.messages.page(ChatId(chat), 0, 1000))
        return [row.text for row in rows]

    async def all_tasks(self) -> list[Task]:
        return list(await self.tasks.all())

    async def task(self, id: str, folder: str = FAMILY) -> Task:
        """A standing prompt of a group."""
        new = NewTask(
            folder=folder,
            prompt="water the plants",
            schedule_type="cron",
            schedule_value="0 9 * * *",
            created_by=folder,
            id=id,
        )
        return await self.tasks.add(new)

    async def soon(self, condition: Callable[[], object]) -> None:
        """Within some time of the clock's."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.clock.advance(timedelta(seconds=1))
                await asyncio.sleep(A_MOMENT)

    async def channel_hears(self, chat: str) -> None:
        """A chat that nobody has registered."""
        seen = ChatSeen(chat=ChatId(chat), channel="fake", at=self.clock.now(), name="Seen")
        await self.store.write(lambda tx: tx.chats.seen(seen))

    async def register(self, folder: str, *, is_main: bool = False) -> Group:
        new = NewGroup(chat=chat_of(folder), name=folder.title(), folder=folder, is_main=is_main)
        return await self.groups.add(new)


def names_in(folder: Path) -> list[str]:
    """Also while an agent or the host changes it."""
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that shows in files only."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  files tell nobody
            await asyncio.sleep(A_MOMENT)


class TroubledCommands(Commands):
    """Raises what it is told to, once each, and works otherwise."""

    def __init__(self, *, troubles: list[Exception], **rest: Any) -> None:
        super().__init__(**rest)
        self._troubles = troubles

    async def carry_out(self, asked: Asked) -> Carried:
        if self._troubles:
            raise self._troubles.pop(0)
        return await super().carry_out(asked)


@contextlib.asynccontextmanager
async def open_post(
    path: Path,
    *,
    rate: Rate = LIFTED,
    is_serving: bool = True,
    groups: tuple[str, ...] = (FAMILY, WORK),
    ask_kernel: Callable[[], INotify] | None = None,
    troubles: Sequence[Exception] = (),
) -> AsyncIterator[Post]:
    """The room as wiring builds it, with main and some groups; opened again on the same path it
    is the next host."""
    clock = FakeClock()
    channel = FakeChannel()
    feed = MemoryFeed()
    data = path / "data"
    for folder in ("claims", "ipc/errors"):
        (data / folder).mkdir(parents=True, exist_ok=True)
    async with open_store(path / "hallporter.db", clock) as store:
        engine = EmbeddedEngine(store=store, clock=clock, pool_size=lambda _pool: 5)

        def channel_of(chat: ChatId) -> FakeChannel | None:
            return channel if channel.owns(chat) else None

        def tasks_changed(folder: Folder) -> None:
            room.changed(folder)

        def groups_changed(folder: Folder) -> None:
            room.regrouped(folder)

        outbound = Outbound(
            channel_of=channel_of,
            wake_delivery=lambda _chat: None,
            feed=feed,
            clock=clock,
            new_id=counting_id,
            speaker="Andy",
        )
        tasks = Tasks(
            store=store,
            engine=engine,
            clock=clock,
            new_id=counting_id,
            timezone="Europe/Berlin",
            poke=lambda: None,
            changed=tasks_changed,
        )
        registry = Groups(
            store=store,
            clock=clock,
            channel_of=channel_of,
            check_agent=check_agent,
            refuse_fixed=lambda _folder, _values: None,
            refuse_fixed_senders=lambda _folder, _change: None,
            close_warm=lambda _chat: None,
            changed=groups_changed,
            assistant_name="Andy",
        )
        commands = TroubledCommands(
            troubles=list(troubles),
            store=store,
            tasks=tasks,
            groups=registry,
            outbound=outbound,
            enclosures=Enclosures(store=store, shelf=Media(path), new_id=counting_id),
            channels=(channel,),
            clock=clock,
        )
        room = Mailroom(
            data=data,
            store=store,
            commands=commands,
            clock=clock,
            new_id=counting_id,
            rate=rate,
            ask_kernel=ask_kernel,
        )
        post = Post(
            data=data,
            store=store,
            commands=commands,
            tasks=tasks,
            groups=registry,
            room=room,
            channel=channel,
            clock=clock,
        )
        if not await registry.all():
            await post.register(MAIN, is_main=True)
            for folder in groups:
                await post.register(folder)
        async with asyncio.TaskGroup() as parent:
            if is_serving:
                await room.recover()
                parent.create_task(room.serve())
                known = [group.folder for group in await registry.all()]
                watch = room._watch
                await until(lambda: all(one in watch.unwatched or watch.has(one) for one in known))
            try:
                yield post
            finally:
                room.close()
