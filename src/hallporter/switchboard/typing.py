"""A sign of life in the chat while an agent works."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hallporter.domain.ids import ChatId
    from hallporter.ports import Channel, Clock

log = structlog.get_logger(__name__)

_REFRESH = timedelta(seconds=8)  # networks let the sign fade after 10 s or more
_PATIENCE = 2.0  # seconds a network may take; a stuck one must not hold an answer back


@contextlib.asynccontextmanager
async def typing(channel: Channel | None, chat: ChatId, clock: Clock) -> AsyncIterator[None]:
    """On inside the block, off after it."""
    if channel is None or not channel.capabilities.typing:
        yield
        return
    async with asyncio.TaskGroup() as tasks:
        refresh = tasks.create_task(_keep(channel, chat, clock), name=f"typing:{chat}")
        try:
            yield
        finally:
            refresh.cancel()
            await _say(channel, chat, is_typing=False)


async def _keep(channel: Channel, chat: ChatId, clock: Clock) -> None:
    while True:
        await _say(channel, chat, is_typing=True)
        await clock.sleep(_REFRESH)


async def _say(channel: Channel, chat: ChatId, *, is_typing: bool) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            await channel.typing(chat, is_typing=is_typing)
    except Exception as error:  # noqa: BLE001  a missing sign of life must never cost an answer
        log.debug("typing.failed", chat=chat, error=repr(error))
