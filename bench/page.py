"""The page: what it costs to make one, what fifty open ones cost, and how soon words are seen."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import datetime
from typing import TYPE_CHECKING

import httpx

from bench.figures import Figure, percentile, sampled
from bench.host import PATIENCE, furnish, running
from bench.process import processor_time
from tests.journeys.browser import DESKTOP, chromium, window

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from playwright.async_api import Page

    from bench.host import Host

GOAL_OPEN = 5.0  # percent of a core for all open pages together
GOAL_SEEN = 30.0  # milliseconds
_CHAT = "web:page"
_HISTORY = 50  # messages on the page
_OPEN = 50  # pages
_PAUSE = 0.05  # seconds
_TEXT = "A line with **strong** words, `code` and a [link](https://a.example/)."

# The frame in which a message is drawn first, in milliseconds of the machine's clock.
_WATCH = """
window.drawn = new Map();
new MutationObserver((changes) => {
  for (const item of changes.flatMap((change) => [...change.addedNodes]))
    requestAnimationFrame(() => {
      window.drawn.set(item.id, performance.timeOrigin + performance.now());
    });
}).observe(document.getElementById("log"), { childList: true });
"""


async def measure(folder: Path, rounds: int, rest: float) -> Sequence[Figure]:
    """In a chat where nobody answers, so that only the page is measured."""
    home = folder / "page"
    await furnish(home, 0)
    async with running(home) as host, host.client() as operator:
        group = {"chat": _CHAT, "name": "Page", "folder": "page"}
        (await operator.post("/api/groups", json=group)).raise_for_status()
        for _ in range(_HISTORY):
            await _say(operator)
        made = await _made(host, operator, rounds)
        burnt = await _stand_open(host, operator, rest)
        seen = await _seen(host, operator, rounds)
    return [
        sampled("page.made", f"the page with {_HISTORY} messages, over HTTP", "ms", made),
        Figure(
            key="page.made.p99",
            what="— of that, p99",
            unit="ms",
            value=percentile(made, 0.99),
            n=len(made),
        ),
        Figure(
            key="page.open",
            what=f"CPU, {_OPEN} open pages, nothing happens",
            unit="%",
            value=burnt,
            at_most=GOAL_OPEN,
        ),
        sampled("page.seen", "accepted → drawn in an open page", "ms", seen, at_most=GOAL_SEEN),
    ]


async def _say(operator: httpx.AsyncClient) -> str:
    answer = await operator.post(f"/api/chats/{_CHAT}/messages", json={"text": _TEXT})
    answer.raise_for_status()
    id_: str = answer.json()["id"]
    return id_


async def _link(operator: httpx.AsyncClient) -> str:
    path: str = (await operator.post("/api/links")).json()["data"]["path"]
    return path


@contextlib.asynccontextmanager
async def _browser(host: Host, operator: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=host.url, timeout=PATIENCE, limits=limits, trust_env=False
    ) as client:
        await client.get(await _link(operator))
        yield client


async def _made(host: Host, operator: httpx.AsyncClient, rounds: int) -> Sequence[float]:
    took = []
    async with _browser(host, operator) as client:
        for _ in range(rounds * 4):
            began = time.perf_counter()
            (await client.get(f"/?chat={_CHAT}")).raise_for_status()
            took.append(1000 * (time.perf_counter() - began))
    return took


async def _stand_open(host: Host, operator: httpx.AsyncClient, seconds: float) -> float:
    async with _browser(host, operator) as client, contextlib.AsyncExitStack() as stack:
        for _ in range(_OPEN):
            stream = client.stream("GET", f"/chats/{_CHAT}/events")
            (await stack.enter_async_context(stream)).raise_for_status()
        before, began = processor_time(host.pid), time.perf_counter()
        await asyncio.sleep(max(seconds, 20.0))  # a keep-alive of each is among it
        return 100 * (processor_time(host.pid) - before) / (time.perf_counter() - began)


async def _seen(host: Host, operator: httpx.AsyncClient, rounds: int) -> Sequence[float]:
    async with chromium() as browser, window(browser, host.url, DESKTOP) as person:
        page = await person.tab(f"{host.url}{await _link(operator)}")
        await page.goto(f"{host.url}/?chat={_CHAT}")
        await page.evaluate(_WATCH)
        return [await _trip(operator, page) for _ in range(rounds)]


async def _trip(operator: httpx.AsyncClient, page: Page) -> float:
    await asyncio.sleep(_PAUSE)
    item = page.locator(f"[id='m-{await _say(operator)}']")
    await item.wait_for()
    accepted = await item.locator("time").first.get_attribute("datetime")
    drawn: float = await item.evaluate(
        "async (item) => {"
        " while (!window.drawn.has(item.id)) await new Promise(requestAnimationFrame);"
        " return window.drawn.get(item.id); }"
    )
    return drawn - 1000 * datetime.fromisoformat(str(accepted)).timestamp()
