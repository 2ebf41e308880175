"""The nightly sweep: what is older than the settings allow goes, and it is said how much."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog

from hallporter.domain.removal import Reason, Removal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.ids import MessageId, TaskId
    from hallporter.domain.removal import Retention
    from hallporter.ports import Clock, Store
    from hallporter.switchboard.enclosures import Enclosures
    from hallporter.switchboard.notices import Notices
    from hallporter.switchboard.scrubbing import Scrubbing

log = structlog.get_logger(__name__)

_FOUND_AT_ONCE = 10_000  # messages looked up in one go, beside the writer
_DROPPED_AT_ONCE = 200  # rows in one transaction: nobody's message waits long behind it


class Logs(Protocol):
    """The files that programs and the host have left."""

    async def remove_logs(self, before: datetime) -> int:
        """Those last written before then; how many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Runs once a day, whoever asks how often."""

    store: Store
    clock: Clock
    retention: Retention
    logs: Logs
    enclosures: Enclosures
    notices: Notices
    scrubbing: Scrubbing

    async def run_if_due(self) -> Removal | None:
        """None when today's is done already."""
        await self.scrubbing.scrub_if_owed()
        now = self.clock.now()
        last = await self.store.read(lambda tx: tx.removals.last(Reason.RETENTION))
        if not self.retention.is_due(now, None if last is None else last.at):
            return None
        removal = Removal(at=now, reason=Reason.RETENTION, counts=await self._remove(now))
        await self.store.write(lambda tx: tx.removals.add(removal))
        if not removal.is_empty:
            log.info("retention.swept", **removal.counts)
            await self.notices.swept(removal)
        await self.scrubbing.scrub()
        return removal

    async def _remove(self, now: datetime) -> Mapping[str, int]:
        kinds = ("messages", "turns", "ticks", "commands", "logs", "files")
        counts = dict.fromkeys(kinds, 0)
        if self.retention.messages is not None:
            before = now - self.retention.messages
            counts["messages"] = await self._remove_messages(before)
            counts["turns"] = await self._remove_turns(before)
            counts["ticks"] = await self._remove_ticks(before)
            counts["commands"] = await self._remove_commands(before)
        if self.retention.logs is not None:
            counts["logs"] = await self.logs.remove_logs(now - self.retention.logs)
        kept = self.retention.media
        counts["files"] = await self.enclosures.sweep(now, None if kept is None else now - kept)
        return counts

    async def _remove_messages(self, before: datetime) -> int:
        count = 0
        while True:
            found = await self.store.read(
                lambda tx: tx.removals.old_messages(before, _FOUND_AT_ONCE)
            )
            dropped = 0
            for start in range(0, len(found), _DROPPED_AT_ONCE):
                dropped += await self._drop(found[start : start + _DROPPED_AT_ONCE])
            count += dropped
            # What could not be dropped is needed after all: the next night looks again.
            if len(found) < _FOUND_AT_ONCE or not dropped:
                return count

    async def _drop(self, messages: Sequence[MessageId]) -> int:
        def fn(tx: Tx) -> int:
            dropped = sum(tx.removals.drop_message(message) for message in messages)
            if dropped:
                tx.removals.owe_scrub(self.clock.now())
            return dropped

        return await self.store.write(fn)

    async def _remove_turns(self, before: datetime) -> int:
        def fn(tx: Tx) -> int:
            dropped = tx.removals.drop_turns(before, _DROPPED_AT_ONCE)
            if dropped:
                tx.removals.owe_scrub(self.clock.now())
            return dropped

        count = 0
        while dropped := await self.store.write(fn):
            count += dropped
        return count

    async def _remove_commands(self, before: datetime) -> int:
        count = 0
        while dropped := await self.store.write(
            lambda tx: tx.removals.drop_commands(before, _DROPPED_AT_ONCE)
        ):
            count += dropped
        return count

    async def _remove_ticks(self, before: datetime) -> int:
        count = 0
        while found := await self.store.read(
            lambda tx: tx.removals.old_ticks(before, _FOUND_AT_ONCE)
        ):
            for start in range(0, len(found), _DROPPED_AT_ONCE):
                dropped = found[start : start + _DROPPED_AT_ONCE]
                await self.store.write(partial(_drop_ticks, ticks=dropped))
            count += len(found)
        return count


def _drop_ticks(tx: Tx, ticks: Sequence[tuple[TaskId, datetime]]) -> None:
    for task, due in ticks:
        tx.removals.drop_tick(task, due)
