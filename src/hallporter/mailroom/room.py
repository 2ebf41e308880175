"""The mailroom itself: watches the boxes, tells agents what they may know, opens and closes."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.brief import Snapshots
from hallporter.domain.errors import UnavailableError
from hallporter.mailroom import snapshots
from hallporter.mailroom.claims import Claims
from hallporter.mailroom.desk import Desk
from hallporter.mailroom.folders import Folders
from hallporter.mailroom.handling import Handling, read
from hallporter.mailroom.pace import Pace, Rate
from hallporter.mailroom.quarantine import Quarantine
from hallporter.mailroom.results import Results
from hallporter.mailroom.watch import Watch
from hallporter.switchboard.snapshots import sight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inotify_simple import INotify

    from hallporter.domain.group import Group
    from hallporter.domain.ids import Folder, NewId
    from hallporter.ports import Clock, Store
    from hallporter.switchboard.commands import Commands

log = structlog.get_logger(__name__)

_SWEEP = timedelta(seconds=60)  # between looks into folders that nobody can watch
_REST = timedelta(seconds=1)  # between two writings of what has changed
_SHARE = 10  # at most one part in so many of the time goes into that
_DRAIN = 5.0  # seconds that an answer waits for the messages before it
_LAST_LETTERS = 1.0  # seconds at the end for what is in hand
_BATCH = 50  # claims of an earlier host taken up together


class Mailroom:
    """`ports.Mail`, and the life of it: `recover`, then `serve` until `close`."""

    def __init__(
        self,
        *,
        data: Path,
        store: Store,
        commands: Commands,
        clock: Clock,
        new_id: NewId,
        rate: Rate | None = None,
        ask_kernel: Callable[[], INotify] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rate = rate or Rate()
        self._folders = Folders(data / "ipc")
        self._claims = Claims(data / "claims", folders=self._folders, new_id=new_id)
        self._handling = Handling(
            commands=commands,
            quarantine=Quarantine(data / "ipc" / "errors"),
            results=Results(self._folders),
            publish=self._publish,
            clock=clock,
        )
        self._watch = Watch(self._folders, self._stir, ask_kernel)
        self._desks: dict[Folder, Desk] = {}
        self._registered: set[Folder] = set()
        self._main: Folder | None = None
        self._changed: set[Folder] = set()
        self._news = asyncio.Event()
        self._writing: defaultdict[Folder, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: asyncio.TaskGroup | None = None
        self._ended = asyncio.Event()

    @property
    def unwatched(self) -> Sequence[Folder]:
        """Folders in which a request may lie for up to a minute."""
        return self._watch.unwatched

    # --- ports.Mail -------------------------------------------------------------------------

    async def announce(self, group: Group) -> Snapshots:
        written = await self._publish(group.folder)
        if self._tasks is not None:
            if not self._watch.has(group.folder):
                self._stir(group.folder)
            self._watch.add(group.folder, is_needed=True)
        return written or Snapshots()

    async def drain(self, group: Group) -> None:
        desk = self._desk(group.folder)
        desk.stir(self._tasks)
        try:
            async with asyncio.timeout(_DRAIN):
                await desk.drained()
        except TimeoutError:
            log.warning("mail.drain_took_long", folder=group.folder)

    # --- what others tell it ----------------------------------------------------------------

    def changed(self, folder: Folder) -> None:
        """A group's tasks are others now: it and main are told, soon."""
        self._changed.add(folder)
        self._news.set()

    def regrouped(self, folder: Folder) -> None:
        """A group came, changed or went."""
        self.changed(folder)
        if self._tasks is not None:
            self._tasks.create_task(self._receive(folder), name=f"regroup:{folder}")

    # --- its own life -----------------------------------------------------------------------

    async def recover(self) -> int:
        """Finish what an earlier host had claimed; how many. Before the first turn."""
        left = self._claims.left()
        count = 0
        while letters := await asyncio.to_thread(
            lambda: [read(claim) for claim in itertools.islice(left, _BATCH)]
        ):
            await self._handling.settle(letters)
            count += len(letters)
        return count

    async def serve(self) -> None:
        """Returns after `close`."""
        self._watch.open()
        try:
            async with asyncio.TaskGroup() as tasks:
                try:
                    self._tasks = tasks
                    await self._begin()
                    helping = (
                        tasks.create_task(self._tell_changes(), name="mail:changes"),
                        tasks.create_task(self._sweep(), name="mail:sweep"),
                    )
                    await self._ended.wait()
                finally:
                    # From now on nobody begins anything.
                    self._tasks = None
                for task in (*helping, *await self._retire()):
                    task.cancel()
        finally:
            self._watch.close()

    def close(self) -> None:
        """What is in hand is finished; the rest lies there until the next start."""
        self._ended.set()

    async def _begin(self) -> None:
        groups = await self._store.read(lambda tx: tx.groups.all())
        self._registered = {group.folder for group in groups}
        self._main = next((group.folder for group in groups if group.is_main), None)
        there = await asyncio.to_thread(self._folders.all)
        for folder in self._registered.union(there):
            self._stir(folder)

    async def _retire(self) -> Sequence[asyncio.Task[None]]:
        retiring = [desk.retire() for desk in self._desks.values()]
        working = [worker for worker in retiring if worker is not None]
        if working:
            await asyncio.wait(working, timeout=_LAST_LETTERS)
        return working

    # --- the boxes --------------------------------------------------------------------------

    def _stir(self, folder: Folder) -> None:
        self._desk(folder).stir(self._tasks)

    def _desk(self, folder: Folder) -> Desk:
        if folder not in self._desks:
            self._desks[folder] = Desk(
                folder,
                claims=self._claims,
                handling=self._handling,
                tend=self._tend,
                pace=Pace(self._rate, self._clock),
                clock=self._clock,
            )
        return self._desks[folder]

    async def _tend(self, folder: Folder) -> None:
        """Before each look: the boxes are there, and watched. What comes later is heard of."""
        if folder not in self._registered or self._watch.has(folder):
            return
        try:
            await asyncio.to_thread(self._folders.prepare, folder)
        except OSError as error:
            log.warning("mail.not_prepared", folder=folder, error=str(error))
        if self._tasks is not None and not self._watch.add(folder):
            # The agent was quicker, and has spoilt them again: so once more, at its own cost.
            self._stir(folder)

    async def _receive(self, folder: Folder) -> None:
        try:
            sight = await self._store.read(lambda tx: sight_of(tx, folder))
        except UnavailableError as error:
            log.warning("mail.not_regrouped", folder=folder, why=error.message)
            return
        if sight is not None:
            self._registered.add(folder)
        else:
            self._registered.discard(folder)
            self._watch.remove(folder)
        # A last look too: what a removed group asked for is put aside, not left lying.
        self._stir(folder)

    async def _sweep(self) -> None:
        while True:
            await self._clock.sleep(_SWEEP)
            for folder in self._watch.unwatched:
                self._stir(folder)

    # --- what agents may know ---------------------------------------------------------------

    async def _publish(self, folder: Folder) -> Snapshots | None:
        """None for a folder that is no group's, and while the store is away."""
        # One at a time: an older view must not be written over a newer one. A folder with much to
        # tell keeps no other waiting.
        async with self._writing[folder]:
            try:
                sight = await self._store.read(lambda tx: sight_of(tx, folder))
            except UnavailableError as error:
                log.warning("snapshot.not_written", folder=folder, error=error.message)
                return None
            if sight is None:
                return None
            if sight.group.is_main:
                self._main = folder
            now = self._clock.now()
            return await asyncio.to_thread(snapshots.write, self._folders, sight, now)

    async def _tell_changes(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._news.wait()
            self._news.clear()
            began = loop.time()
            changed, self._changed = self._changed, set()
            # Whoever is main now is among the changed, or was main before.
            for folder in changed.union(() if self._main is None else (self._main,)):
                try:
                    await self._publish(folder)
                except Exception:  # nobody waits for it: the house lives, and the log says so
                    log.exception("snapshot.not_written", folder=folder)
            took = timedelta(seconds=loop.time() - began)
            # A house with very many tasks does not spend its days writing them down.
            await self._clock.sleep(max(_REST, took * _SHARE))
