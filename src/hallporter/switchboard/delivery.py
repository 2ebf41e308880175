"""Sending what is in the outbox: in order per chat, under our own ids, until it has an end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.errors import RefusedError, UnavailableError
from hallporter.domain.happening import Delivered
from hallporter.domain.outbox import Delivery as State

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.domain.ids import ChatId
    from hallporter.domain.outbox import Outgoing, Part
    from hallporter.ports import Channel, Clock, Feed, Store

log = structlog.get_logger(__name__)

_AT_ONCE = 20  # rows read in one go
_MAX_TRIES = 5  # sends that fail in a way we do not know; a network that is away does not count
_MAX_UNRECOGNISED = 2  # the same, where the network would show each of them
_PATIENCE = 60.0  # seconds a network may take for one send
_WAITS = tuple(timedelta(seconds=s) for s in (1, 2, 5, 10, 30, 60))
_REPEATED = "(sent again after an interruption) "


class Delivery:
    """One sender per chat that has something to send; chats do not wait for one another."""

    def __init__(
        self,
        *,
        store: Store,
        channel_of: Callable[[ChatId], Channel | None],
        feed: Feed,
        clock: Clock,
    ) -> None:
        self._store = store
        self._channel_of = channel_of
        self._feed = feed
        self._clock = clock
        self._woken: set[ChatId] = set()
        self._active: set[ChatId] = set()
        self._poked = asyncio.Event()

    def wake(self, chat: ChatId) -> None:
        """There is something to send in this chat."""
        self._woken.add(chat)
        self._poked.set()

    async def serve(self) -> None:
        """Send for ever; what an earlier host left unsent goes first."""
        self._woken.update(await self._store.read(lambda tx: tx.outbox.chats_with_pending()))
        async with asyncio.TaskGroup() as senders:
            while True:
                for chat in self._woken - self._active:
                    self._woken.discard(chat)
                    self._active.add(chat)
                    senders.create_task(self._send_all(chat), name=f"send:{chat}")
                self._poked.clear()
                if not self._woken - self._active:
                    await self._poked.wait()

    async def _send_all(self, chat: ChatId) -> None:
        try:
            while rows := await self._store.read(lambda tx: tx.outbox.pending(chat, _AT_ONCE)):
                for row in rows:
                    await self._send(row)
        except Exception:  # the border of one chat: the others go on
            # What could not be noted is still pending: it is tried again after a while.
            log.exception("delivery.paused", chat=chat)
            await self._clock.sleep(_WAITS[2])
            self._woken.add(chat)
        finally:
            self._active.discard(chat)
            self._poked.set()

    async def _send(self, row: Outgoing) -> None:
        channel = self._channel_of(row.chat)
        if channel is None:
            await self._finish(row, State.UNDELIVERABLE, "no channel serves this chat")
            return
        for index, part in enumerate(row.parts):
            if part.state is State.SENT:
                continue
            why = await self._send_part(channel, row, index, part)
            if why:
                await self._finish(row, State.UNDELIVERABLE, why)
                return
        await self._finish(row, State.SENT, "")

    async def _send_part(self, channel: Channel, row: Outgoing, index: int, part: Part) -> str:
        """Empty when the network has it, else why it never will.

        `attempts` counts the sends of which nobody knows whether the network has them. Where it
        recognises a repeat by its id there may be some; elsewhere one more, marked.
        """
        is_recognised = channel.capabilities.takes_message_id
        may_try = _MAX_TRIES if is_recognised else _MAX_UNRECOGNISED
        waits = 0
        unknown = "it is not known whether the network has it"
        while part.attempts < may_try:
            is_marked = part.attempts > 0 and not is_recognised
            doubtful = replace(part, state=State.SENDING, attempts=part.attempts + 1)
            if not is_recognised:
                await self._save_part(row, index, doubtful)
            try:
                async with asyncio.timeout(_PATIENCE):
                    body = _REPEATED + part.body if is_marked else part.body
                    await channel.send(row.chat, body, part.message_id, part.files)
            except RefusedError as error:
                return error.message
            except UnavailableError as error:
                log.warning("reply.waits", chat=row.chat, channel=channel.name, why=error.message)
                if not is_recognised:
                    # It did not leave the house: the host's end must not make it doubtful.
                    await self._save_part(row, index, replace(part, state=State.PENDING))
            except Exception as error:  # the border to a network's library, and its time-outs
                part = doubtful
                log.exception("reply.failed", chat=row.chat, channel=channel.name, tries=waits + 1)
                if part.attempts >= may_try:
                    return f"{type(error).__name__}: {error}" if is_recognised else unknown
            else:
                if len(row.parts) > 1:
                    await self._save_part(row, index, replace(part, state=State.SENT))
                return ""
            await self._clock.sleep(_WAITS[min(waits, len(_WAITS) - 1)])
            waits += 1
        return unknown

    async def _save_part(self, row: Outgoing, index: int, part: Part) -> None:
        await self._store.write(lambda tx: tx.outbox.save_part(row.number, index, part))

    async def _finish(self, row: Outgoing, state: State, why: str) -> None:
        await self._store.write(lambda tx: tx.outbox.finish(row.number, state, why))
        if state is State.UNDELIVERABLE:
            log.error("reply.undeliverable", chat=row.chat, message=row.message, why=why)
        else:
            log.info("reply.sent", chat=row.chat, message=row.message, parts=len(row.parts))
        self._feed.publish(Delivered(chat=row.chat, message=row.message, state=str(state)))
