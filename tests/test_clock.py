from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from hallporter.clock import SystemClock


def test_now_is_the_machines_time_in_utc() -> None:
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo is UTC


@pytest.mark.anyio
async def test_a_sleep_lasts_as_long_as_asked() -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    await SystemClock().sleep(timedelta(milliseconds=20))
    # The loop wakes timers that are due within its own resolution.
    assert loop.time() - before >= 0.019


@pytest.mark.anyio
async def test_a_sleep_until_a_past_time_ends_at_once() -> None:
    async with asyncio.timeout(5):
        await SystemClock().sleep(timedelta(days=-1))
