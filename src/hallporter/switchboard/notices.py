"""Telling the operator what needs them: once a cause, where it will be read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.notice import Cause, Failing, Notice, Undelivered, judge, where_to_tell
from hallporter.domain.removal import told
from hallporter.domain.task import MAX_FAILURES, TickState, excerpt
from hallporter.switchboard.outbound import Words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hallporter.books import Tx
    from hallporter.domain.ids import ChatId
    from hallporter.domain.notice import Verdict
    from hallporter.domain.removal import Removal
    from hallporter.domain.task import Task
    from hallporter.ports import Channel, Clock, Store
    from hallporter.switchboard.outbound import Outbound

log = structlog.get_logger(__name__)

_RECENT = timedelta(days=1)  # how long something that merely happened is shown
_ENOUGH = 1.1  # times the least room: below that, a notice once raised stays
_LOOK_BACK = 20  # ticks, for the one that tells why a task was paused
_MIGRATED = "migrated"
_SWEPT = "swept"
_HAPPENED = (_MIGRATED, _SWEPT)
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class Notices:
    """`look` compares what is so with what was said; it may be called at any time."""

    def __init__(
        self,
        *,
        store: Store,
        outbound: Outbound,
        channel_of: Callable[[ChatId], Channel | None],
        clock: Clock,
        free_disk: Callable[[], int],
        min_free_disk: int | None,
    ) -> None:
        self._store = store
        self._outbound = outbound
        self._channel_of = channel_of
        self._clock = clock
        self._free_disk = free_disk
        self._min_free_disk = min_free_disk

    async def open(self) -> Sequence[Notice]:
        """What needs the operator now, oldest first; that the disk is full also while it is too
        full to store that."""
        kept = await self._store.read(lambda tx: tx.notices.open())
        live = {cause.key: cause for cause in self._disk(await asyncio.to_thread(self._free_disk))}
        now = self._clock.now()
        return [
            *(replace(one, text=live[one.key].text) if one.key in live else one for one in kept),
            *(
                Notice(key=cause.key, text=cause.text, raised_at=now)
                for cause in live.values()
                if cause.is_due and cause.key not in {one.key for one in kept}
            ),
        ]

    async def look(self) -> None:
        """Raise what is new, resolve what is over, tell what was not told."""
        free = await asyncio.to_thread(self._free_disk)
        if await self._store.read(lambda tx: self._has_work(tx, free)):
            await self._store.write(lambda tx: self._act(tx, free))

    async def migrated(self, schema: int, copy: str) -> None:
        """The database was brought up to date; `copy` is what it was before."""
        text = (
            f"The database was brought up to schema {schema}. What it was before is kept as"
            f" `{copy}` in the home; delete it when all is well."
        )
        await self._store.write(lambda tx: self._happen(tx, _MIGRATED, text, is_quiet=False))

    async def swept(self, removal: Removal) -> None:
        """The nightly sweep has removed something: shown, but nobody is woken for it."""
        text = f"The nightly sweep removed {told(removal.counts)}."
        await self._store.write(lambda tx: self._happen(tx, _SWEPT, text, is_quiet=True))

    def _happen(self, tx: Tx, key: str, text: str, *, is_quiet: bool) -> None:
        now = self._clock.now()
        tx.notices.save(Notice(key=key, text=text, raised_at=now, is_quiet=is_quiet))

    def _has_work(self, tx: Tx, free: int) -> bool:
        verdict = self._judge(tx, free)
        can_tell = self._untold(tx) and self._where(tx) is not None
        return bool(verdict.to_raise or verdict.to_resolve or can_tell)

    def _act(self, tx: Tx, free: int) -> None:
        now = self._clock.now()
        verdict = self._judge(tx, free)
        for cause in verdict.to_raise:
            tx.notices.save(Notice(key=cause.key, text=cause.text, raised_at=now))
            tx.after_commit(partial(log.warning, "notice.raised", key=cause.key))
        for key in verdict.to_resolve:
            if (notice := tx.notices.get(key)) is not None:
                tx.notices.save(replace(notice, resolved_at=now))
                tx.after_commit(partial(log.info, "notice.resolved", key=key))
        if (where := self._where(tx)) is not None:
            for notice in self._untold(tx):
                self._tell(tx, where, notice)

    def _tell(self, tx: Tx, chat: ChatId, notice: Notice) -> None:
        key = f"notice:{notice.key}:{notice.raised_at.isoformat()}"
        self._outbound.put(tx, Words(chat=chat, key=key, text=notice.text))
        tx.notices.save(replace(notice, told_at=self._clock.now()))

    def _untold(self, tx: Tx) -> Sequence[Notice]:
        return [n for n in tx.notices.open() if n.told_at is None and not n.is_quiet]

    def _where(self, tx: Tx) -> ChatId | None:
        return where_to_tell(tx.groups.all(), self._is_healthy)

    def _is_healthy(self, chat: ChatId) -> bool:
        channel = self._channel_of(chat)
        return channel is not None and channel.health().ok

    def _judge(self, tx: Tx, free: int) -> Verdict:
        now = self._clock.now()
        known = {notice.key: notice for notice in tx.notices.all()}
        causes = [
            *(_failing(one) for one in tx.notices.failing()),
            *(_given_up(tx, task) for task in tx.tasks.given_up(MAX_FAILURES)),
            *(_undelivered(one) for one in tx.notices.undelivered(now - _RECENT)),
            *self._disk(free),
            *(
                Cause(key=key, text=known[key].text, is_due=False)
                for key in _HAPPENED
                if key in known and now - known[key].raised_at < _RECENT
            ),
        ]
        return judge(causes, known)

    def _disk(self, free: int) -> Sequence[Cause]:
        least = self._min_free_disk
        if least is None or free >= least * _ENOUGH:
            return ()
        text = (
            f"The disk is nearly full: {_shown(free)} free where the home lies, and less than"
            f" {_shown(least)} is too little. Make room, or messages can no longer be stored."
        )
        return (Cause(key="disk", text=text, is_due=free < least),)


def _failing(one: Failing) -> Cause:
    why = one.why.rstrip(".") or "it does not say why"
    text = (
        f"The agent of '{one.folder}' keeps failing: {why}. Mend that, then write in {one.chat}:"
        f" the next message tries again. What the agent printed is in groups/{one.folder}/logs."
    )
    return Cause(key=f"failing:{one.chat}", text=text, is_due=one.is_stuck)


def _given_up(tx: Tx, task: Task) -> Cause:
    failed = (t for t in tx.tasks.ticks(task.id, _LOOK_BACK) if t.state is TickState.FAILED)
    last = next(failed, None)
    why = (last.why.rstrip(".") if last is not None else "") or "it does not say why"
    text = (
        f"The task \"{excerpt(task.prompt)}\" of '{task.folder}' failed {task.failures} times in a"
        f" row and is paused: {why}. Mend that, then say `hallporter tasks resume {task.id}`."
    )
    return Cause(key=f"task:{task.id}", text=text)


def _undelivered(one: Undelivered) -> Cause:
    what = "A reply" if one.count == 1 else f"{one.count} replies"
    text = (
        f"{what} in {one.chat} could not be delivered: {one.why.rstrip('.')}."
        " The text is kept: read it in the chat's history."
    )
    return Cause(key=f"undeliverable:{one.chat}", text=text, since=one.last)


def _shown(size: int) -> str:
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
