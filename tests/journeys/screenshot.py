"""`make screenshot`: the picture of the page in the README, taken from a fresh host."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import expect

from tests.journeys.browser import DESKTOP, chromium, window
from tests.journeys.host import running

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "page.png"
SHAPE = {**DESKTOP, "viewport": {"width": 960, "height": 700}, "device_scale_factor": 1.5}
WORDS = ("where are you?", "work slowly for 20 seconds")


async def take(home: Path) -> None:
    async with (
        running(home) as host,
        chromium() as browser,
        window(browser, host.url, SHAPE) as person,
    ):
        page = await person.tab(await host.link())
        for number, words in enumerate(WORDS):
            await expect(page.locator("#log > .reply")).to_have_count(number)
            await expect(page.locator("#working")).to_be_hidden()
            await page.fill("#text", words)
            await page.keyboard.press("Enter")
        await expect(page.locator("#elapsed")).to_have_text("0:03")
        await page.screenshot(path=PICTURE)
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator("#working")).to_be_hidden()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hallporter-") as folder:
        asyncio.run(take(Path(folder) / "home"))


if __name__ == "__main__":
    main()
