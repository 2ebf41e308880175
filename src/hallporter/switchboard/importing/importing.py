"""Moving in from another system: its groups, files, history and tasks become ours."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.errors import ConflictError, UnavailableError
from hallporter.domain.import_report import Ledger, Outcome
from hallporter.switchboard.importing.groups import ImportedGroups
from hallporter.switchboard.importing.messages import ImportedMessages
from hallporter.switchboard.importing.moving import Moving
from hallporter.switchboard.importing.slow_work import on_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
    from contextlib import AbstractContextManager

    from hallporter.domain.ids import ChatId, NewId
    from hallporter.domain.import_report import Report
    from hallporter.ports import Channel, Clock, Store
    from hallporter.switchboard.importing.archive import Archive
    from hallporter.switchboard.importing.moving import Neighbours

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is; `total` is an estimate."""

    done: int
    total: int


class Importing:
    """The use case behind `import`; one at a time. Repeating it is harmless, also after one that
    was cut short: what is there is not touched, and what is new is added."""

    def __init__(
        self,
        *,
        system: str,
        open_archive: Callable[[str, str | None, threading.Event], AbstractContextManager[Archive]],
        store: Store,
        clock: Clock,
        new_id: NewId,
        channel_of: Callable[[ChatId], Channel | None],
        check_agent: Callable[[Mapping[str, object]], Mapping[str, object]],
        neighbours: Neighbours,
        assistant_name: str,
        timezone: str,
    ) -> None:
        self._system = system
        self._open_archive = open_archive
        self._store = store
        self._clock = clock
        self._channel_of = channel_of
        self._groups = ImportedGroups(
            channel_of=channel_of, check_agent=check_agent, assistant_name=assistant_name
        )
        self._messages = ImportedMessages(
            system=system, channel_name=self._channel_name, new_id=new_id
        )
        self._neighbours = neighbours
        self._timezone = timezone
        self._lock = asyncio.Lock()
        self._running: set[threading.Event] = set()

    async def run(
        self, path: str, config: str | None, *, is_dry_run: bool
    ) -> AsyncGenerator[Progress | Report]:
        """The report comes last. Raises a refusal before the first step when there is nothing that
        can be read, and `UnavailableError` when the house ends; `config` is where the other system
        keeps its allow-lists."""
        if self._lock.locked():
            raise ConflictError("an import is running: wait for its end")
        async with self._lock:
            log.info("import.began", system=self._system, path=path, is_dry_run=is_dry_run)
            try:
                async with (
                    self._opened(path, config) as (archive, stopping),
                    contextlib.aclosing(
                        self._run(archive, stopping, is_dry_run=is_dry_run)
                    ) as steps,
                ):
                    async for step in steps:
                        yield step
            except (asyncio.CancelledError, GeneratorExit, UnavailableError):
                log.warning("import.cut_short", system=self._system)
                raise

    @contextlib.asynccontextmanager
    async def _opened(
        self, path: str, config: str | None
    ) -> AsyncIterator[tuple[Archive, threading.Event]]:
        stopping = threading.Event()
        opened = self._open_archive(path, config, stopping)
        stack = contextlib.ExitStack()
        self._running.add(stopping)
        try:
            yield await on_thread(lambda: stack.enter_context(opened), stopping), stopping
        finally:
            self._running.discard(stopping)
            await on_thread(stack.close, threading.Event())

    def close(self) -> None:
        """The house ends: one that runs is cut short, soon."""
        for stopping in self._running:
            stopping.set()

    async def _run(
        self, archive: Archive, stopping: threading.Event, *, is_dry_run: bool
    ) -> AsyncGenerator[Progress | Report]:
        ledger = Ledger()
        moving = Moving(
            archive=archive,
            stopping=stopping,
            ledger=ledger,
            is_dry_run=is_dry_run,
            store=self._store,
            clock=self._clock,
            groups=self._groups,
            messages=self._messages,
            channel_name=self._channel_name,
            neighbours=self._neighbours,
            system=self._system,
            timezone=self._timezone,
        )
        async with contextlib.aclosing(moving.go()) as steps:
            async for done, total in steps:
                yield Progress(done, total)
        report = ledger.report(archive.source, is_dry_run=is_dry_run)
        carried = {str(noun): by[Outcome.CARRIED] for noun, by in report.counts.items()}
        log.info("import.ended", system=self._system, is_dry_run=is_dry_run, **carried)
        yield report

    def _channel_name(self, chat: ChatId) -> str | None:
        channel = self._channel_of(chat)
        return None if channel is None else channel.name
