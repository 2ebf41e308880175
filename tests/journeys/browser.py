"""A real Chromium that watches itself: errors, foreign requests, and what axe finds."""

from __future__ import annotations

import base64
import contextlib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from playwright.async_api import async_playwright, expect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Locator,
        Page,
        Request,
    )

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",  # tests may run as root
    "--headless=new",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE = 20_000  # milliseconds, on a busy machine
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
PICTURES = Path(__file__).parents[2] / "build" / "pictures"

DESKTOP: dict[str, Any] = {"viewport": {"width": 1100, "height": 800}, "color_scheme": "light"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "color_scheme": "dark",
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}

# The rows in which two pictures differ, by more than what a second drawing may.
_ROWS = """async (pictures) => {
  const pixels = await Promise.all(pictures.map(async (picture) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  }));
  const [one, other] = pixels.map(({ data }) => data);
  const rows = new Set();
  for (let place = 0; place < one.length; place += 1) {
    if (Math.abs(one[place] - other[place]) > 48) {
      rows.add(Math.floor(place / 4 / pixels[0].width));
    }
  }
  return [...rows];
}"""

expect.set_options(timeout=PATIENCE)


@dataclass(kw_only=True)
class Window:
    """One browser with cookies of its own; `errors` and `foreign` stay empty when all is well."""

    context: BrowserContext
    origin: str
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    async def tab(self, url: str) -> Page:
        page = await self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        await page.goto(url)
        return page

    def watch(self) -> None:
        self.context.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "data" and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.foreign.append(request.url)


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        await browser.close()


@contextlib.asynccontextmanager
async def window(browser: Browser, origin: str, shape: dict[str, Any]) -> AsyncIterator[Window]:
    context = await browser.new_context(**shape)
    opened = Window(context=context, origin=origin)
    opened.watch()
    yield opened
    await context.close()


async def violations(page: Page) -> list[str]:
    """What axe-core calls serious or critical."""
    await page.evaluate(AXE)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


async def picture(page: Page, name: str) -> None:
    """Kept for people to look at."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=PICTURES / f"{name}.png")


async def scrolls(page: Page) -> bool:
    """Whether the page itself does: only the log in it should."""
    taller: int = await page.evaluate("document.scrollingElement.scrollHeight - innerHeight")
    return taller != 0


async def spills(page: Page, item: Locator) -> bool:
    """Whether an item paints above or below its own box: there it looks otherwise without it."""
    await item.evaluate("(node) => node.scrollIntoView({block: 'center'})")
    box = await item.bounding_box()
    assert box is not None
    looks = []
    for visibility in ("visible", "hidden"):
        await item.evaluate("(node, value) => { node.style.visibility = value }", visibility)
        looks.append(base64.b64encode(await page.screenshot(scale="css")).decode())
    await item.evaluate("(node) => { node.style.visibility = '' }")
    edges = [box["y"] - 2, box["y"] + box["height"] + 2]  # where they are rounded
    rows: list[int] = await page.evaluate(_ROWS, looks)
    return any(not edges[0] <= row <= edges[1] for row in rows)


async def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    wider: int = await page.evaluate(
        "Math.max(document.documentElement.scrollWidth,"
        " document.getElementById('scroll').scrollWidth) - document.documentElement.clientWidth"
    )
    return wider
