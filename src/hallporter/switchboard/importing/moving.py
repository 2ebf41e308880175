"""One move into the house, from the first chat to the last run, a small transaction a step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from hallporter.domain.chat import ChatSeen
from hallporter.domain.foreign import Unread
from hallporter.domain.ids import ChatId
from hallporter.domain.import_report import Noun, Outcome
from hallporter.switchboard.importing.groups import is_chat
from hallporter.switchboard.importing.messages import tell
from hallporter.switchboard.importing.slow_work import on_thread
from hallporter.switchboard.importing.tasks import ImportedTasks, tick_of

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Collection,
        Iterator,
        Mapping,
        Sequence,
    )
    from threading import Event

    from hallporter.books import Tx
    from hallporter.domain.foreign import (
        ForeignChat,
        ForeignGroup,
        ForeignHouse,
        ForeignMessage,
        ForeignRun,
        ForeignTask,
    )
    from hallporter.domain.group import Group
    from hallporter.domain.ids import Folder
    from hallporter.domain.import_report import Ledger
    from hallporter.domain.task import Task
    from hallporter.ports import Clock, Store
    from hallporter.switchboard.importing.archive import Archive
    from hallporter.switchboard.importing.groups import ImportedGroups, Settled
    from hallporter.switchboard.importing.messages import ImportedMessages

T = TypeVar("T")

BATCH = 400  # rows or files a step: the house goes on between two
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

_FOR_ITS_KIND = (
    "it goes on only under the kind of agent that made it: set that agent before anyone talks"
    " there, for another kind begins a session of its own"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Who hears, after the commit, of what has come."""

    groups_changed: Callable[[Folder], None]
    tasks_changed: Callable[[Folder], None]
    close_warm: Callable[[ChatId], None]
    poke: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A dry one decides the same, on a store that it only reads."""

    archive: Archive
    stopping: Event  # set when it is cut short: the archive's work ends
    ledger: Ledger
    is_dry_run: bool
    store: Store
    clock: Clock
    groups: ImportedGroups
    messages: ImportedMessages
    channel_name: Callable[[ChatId], str | None]
    neighbours: Neighbours
    system: str
    timezone: str

    async def go(self) -> AsyncGenerator[tuple[int, int]]:
        """How far it is, and of how many steps; the total is an estimate."""
        house = await self._on_thread(self.archive.house)
        for remark in house.remarks:
            self.ledger.note("settings", remark)
        await self._carry_chats()
        theirs = self._readable(
            Noun.GROUPS, await self._on_thread(lambda: list(self.archive.groups()))
        )
        settled = await self._settle(theirs, house)
        done, total = 0, await self._on_thread(partial(self.archive.size, settled.folders))
        yield done, total
        files = self.archive.files(settled.folders, is_dry_run=self.is_dry_run)
        async for pieces in self._batches(files):
            for piece in pieces:
                self.ledger.add(piece)
            done += len(pieces)
            yield done, total
        await self._name_orphans(settled)
        await self._carry_sessions(theirs, settled.groups)
        chats = {group.chat for group in settled.groups.values()}
        async for messages in self._batches(self.archive.messages()):
            await self._carry_messages(messages, chats)
            done += len(messages)
            yield done, total
        # After the history: a task that is due speaks as soon as it is there.
        tasks = await self._carry_tasks(settled.groups, house.timezone or self.timezone)
        async for runs in self._batches(self.archive.runs()):
            await self._carry_runs(runs, tasks)
            done += len(runs)
            yield done, total
        yield total, total

    # --- chats and groups ---------------------------------------------------------------------

    async def _carry_chats(self) -> None:
        async for read in self._batches(self.archive.chats()):
            found = self._readable(Noun.CHATS, read)
            chats = [one for one in found if self._is_fit(Noun.CHATS, one.name or "", one.chat)]
            fresh = await self._apply(partial(self._see, chats=chats))
            self.ledger.carried(Noun.CHATS, fresh)
            self.ledger.there(Noun.CHATS, len(chats) - fresh)

    def _see(self, tx: Tx, chats: Sequence[ForeignChat]) -> int:
        fresh = [one for one in chats if tx.chats.get(ChatId(one.chat)) is None]
        for one in fresh if not self.is_dry_run else ():
            chat = ChatId(one.chat)
            tx.chats.seen(
                ChatSeen(
                    chat=chat,
                    channel=self.channel_name(chat) or one.channel,
                    at=min(one.last_at or _LONG_AGO, self.clock.now()),
                    name=one.name,
                    is_group=one.is_group,
                )
            )
        return len(fresh)

    async def _settle(self, theirs: Sequence[ForeignGroup], house: ForeignHouse) -> Settled:
        channels = {group.chat: group.channel for group in theirs}

        def fn(tx: Tx) -> Settled:
            settled = self.groups.decide(tx, theirs, house, self.clock.now(), self.ledger)
            if not self.is_dry_run:
                self.groups.write(tx, settled, channels)
                tx.after_commit(lambda: self._tell_groups(settled))
            return settled

        settled = await self._apply(fn)
        if any(group.senders is not None for group in settled.added):
            self.ledger.carried(Noun.ALLOW_LISTS)
        elif any(group.senders is not None for group in theirs):
            self.ledger.there(Noun.ALLOW_LISTS)
        return settled

    def _tell_groups(self, settled: Settled) -> None:
        for group in (settled.removed, settled.unset):
            if group is not None:
                # It must not keep what only main may see.
                self.neighbours.close_warm(group.chat)
                self.neighbours.groups_changed(group.folder)
        for group in settled.added:
            self.neighbours.groups_changed(group.folder)

    async def _name_orphans(self, settled: Settled) -> None:
        for name in await self._on_thread(lambda: list(self.archive.orphans(settled.folders))):
            what = "no imported group has this folder: it stays where it is"
            self.ledger.note(str(Noun.FILES), what, name)

    async def _carry_sessions(
        self, theirs: Sequence[ForeignGroup], groups: Mapping[str, Group]
    ) -> None:
        for foreign in theirs:
            group, session = groups.get(foreign.folder), foreign.session_id
            if group is None or group.chat != foreign.chat or session is None:
                continue
            outcome = await self._apply(partial(self._resume, chat_id=group.chat, session=session))
            match outcome:
                case Outcome.CARRIED:
                    self.ledger.carried(Noun.SESSIONS)
                    self.ledger.note(str(Noun.SESSIONS), _FOR_ITS_KIND, foreign.folder)
                case Outcome.THERE:
                    self.ledger.there(Noun.SESSIONS)
                case Outcome.SKIPPED:
                    why = "its chat has gone on here, in a session of its own"
                    self.ledger.skipped(Noun.SESSIONS, foreign.folder, why)

    def _resume(self, tx: Tx, chat_id: ChatId, session: str) -> Outcome:
        """Only where nobody has worked yet: a session that was ended here must not come back."""
        chat = tx.chats.get(chat_id)
        if chat is not None and chat.session_id == session:
            return Outcome.THERE
        if chat is not None and (chat.epoch or chat.session_no or chat.session_id):
            return Outcome.SKIPPED
        if not self.is_dry_run:
            tx.chats.save(replace(tx.chats.lock(chat_id), session_id=session))
        return Outcome.CARRIED

    # --- what was said, and what is to be done ------------------------------------------------

    async def _carry_messages(
        self, read: Sequence[ForeignMessage | Unread], groups: Collection[ChatId]
    ) -> None:
        found = self._readable(Noun.MESSAGES, read)
        batch = [one for one in found if self._is_fit(Noun.MESSAGES, one.id, one.chat)]
        if self.is_dry_run:
            outcomes = await self.store.read(lambda tx: self.messages.look(tx, batch))
        else:
            now = self.clock.now()
            outcomes = await self.store.write(lambda tx: self.messages.write(tx, batch, now))
        tell(batch, outcomes, groups, self.ledger)

    async def _carry_tasks(self, groups: Mapping[str, Group], zone: str) -> Mapping[str, Task]:
        """By their ids there, those that came and those that were here."""
        deciding = ImportedTasks(groups, timezone=zone, ledger=self.ledger)
        async for read in self._batches(self.archive.tasks()):
            tasks = self._readable(Noun.TASKS, read)
            added = await self._apply(partial(self._plan, tasks=tasks, deciding=deciding))
            self.ledger.carried(Noun.TASKS, len(added))
            if added and not self.is_dry_run:
                self.neighbours.poke()
                for folder in {task.folder for task in added}:
                    self.neighbours.tasks_changed(folder)
        return deciding.tasks

    def _plan(
        self, tx: Tx, tasks: Sequence[ForeignTask], deciding: ImportedTasks
    ) -> Sequence[Task]:
        added = deciding.decide(tx, tasks, self.clock.now())
        for task in added if not self.is_dry_run else ():
            tx.tasks.add(task)
        return added

    async def _carry_runs(
        self, read: Sequence[ForeignRun | Unread], tasks: Mapping[str, Task]
    ) -> None:
        ticks = []
        for run in self._readable(Noun.TICKS, read):
            if (task := tasks.get(run.task)) is not None:
                ticks.append(tick_of(run, task, self.system))
            else:
                self.ledger.skipped(Noun.TICKS, run.task, "its task was not imported")

        def fn(tx: Tx) -> int:
            if self.is_dry_run:
                return sum(1 for tick in ticks if tx.tasks.tick(tick.task, tick.due) is None)
            return sum(1 for tick in ticks if tx.tasks.add_tick(tick))

        fresh = await self._apply(fn)
        self.ledger.carried(Noun.TICKS, fresh)
        self.ledger.there(Noun.TICKS, len(ticks) - fresh)

    async def _apply(self, fn: Callable[[Tx], T]) -> T:
        return await (self.store.read(fn) if self.is_dry_run else self.store.write(fn))

    def _readable(self, noun: Noun, read: Sequence[T | Unread]) -> list[T]:
        found = []
        for one in read:
            if isinstance(one, Unread):
                self.ledger.skipped(noun, one.name, one.why)
            else:
                found.append(one)
        return found

    def _is_fit(self, noun: Noun, name: str, chat: str) -> bool:
        if is_chat(chat):
            return True
        self.ledger.skipped(noun, name, f"{chat[:80]!r} is no chat's id")
        return False

    async def _batches(self, items: Iterator[T]) -> AsyncIterator[list[T]]:
        while batch := await self._on_thread(lambda: list(itertools.islice(items, BATCH))):
            yield batch

    async def _on_thread(self, fn: Callable[[], T]) -> T:
        return await on_thread(fn, self.stopping)
