"""The page as a person meets it: a real host, a real Chromium."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from hallporter.clock import SystemClock
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Kind, Message, State
from hallporter.stores.sqlite import open_store
from tests.journeys.browser import (
    DESKTOP,
    PHONE,
    chromium,
    overflow,
    picture,
    scrolls,
    spills,
    violations,
    window,
)
from tests.journeys.host import Host, running, settings
from tests.journeys.wire import wired

if TYPE_CHECKING:
    from playwright.async_api import Browser, Locator, Page

    from hallporter.books import Tx

pytestmark = pytest.mark.timeout(180)

PATIENCE = 20.0  # seconds
SHAPES = {"desktop": DESKTOP, "phone": PHONE}


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as opened:
        yield opened


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with running(tmp_path / "home") as started:
        yield started


def messages(page: Page) -> Locator:
    return page.locator("#log > .message:not(.pending)")


def replies(page: Page) -> Locator:
    return page.locator("#log > .reply")


async def say(page: Page, text: str) -> None:
    await page.fill("#text", text)
    await page.get_by_role("button", name="Send").click()


async def shown(page: Page) -> list[str]:
    ids: list[str] = await page.evaluate(
        "Array.from(document.querySelectorAll('#log > .message'), (item) => item.id)"
    )
    return ids


async def stored(host: Host, chat: str = "web:main") -> list[str]:
    async with host.client() as operator:
        answer = await operator.get(f"/api/chats/{chat}/messages?limit=200")
    return [f"m-{message['id']}" for message in answer.json()["messages"]]


@pytest.mark.parametrize("shape", SHAPES)
async def test_from_the_first_visit_to_the_first_answers(
    host: Host, browser: Browser, shape: str
) -> None:
    printed = re.search(r"http://\S+", await host.printed())
    assert printed is not None
    async with window(browser, host.url, SHAPES[shape]) as person:
        page = await person.tab(printed[0])
        await expect(page).to_have_url(f"{host.url}/")
        await expect(page.locator("#welcome")).to_contain_text("demo agent")
        await expect(page.locator("#hello")).to_be_in_viewport(ratio=1)
        await picture(page, f"{shape}-welcome")
        assert await violations(page) == []
        assert await overflow(page) <= 0
        assert not await scrolls(page)

        await page.get_by_role("button", name="where are you?").click()
        await expect(replies(page)).to_have_count(1)
        await expect(replies(page)).to_contain_text("sandbox", ignore_case=True)
        await expect(page.locator("#welcome")).to_have_count(0)
        await say(page, "show formatting")
        await expect(replies(page)).to_have_count(2)
        await expect(page.locator("#working")).to_be_hidden()
        await page.locator(".code .copy").first.click()
        await expect(page.locator(".code .copy").first).to_have_text("Copied")
        await picture(page, f"{shape}-answers")
        await page.locator(".fate summary").first.click()
        await expect(page.locator(".story").first).to_contain_text("answered")
        await picture(page, f"{shape}-fate")
        assert await violations(page) == []
        assert await overflow(page) <= 0
        assert not await scrolls(page)
        assert await shown(page) == await stored(host)

        await page.goto(f"{host.url}/sessions")
        await expect(page.locator(".tag")).to_have_text("this browser")
        await picture(page, f"{shape}-sessions")
        assert await violations(page) == []
        assert person.errors == []
        assert person.foreign == []


async def test_the_door_says_how_to_get_in(host: Host, browser: Browser) -> None:
    async with window(browser, host.url, DESKTOP) as person:
        page = await person.tab(host.url)
        await expect(page).to_have_url(f"{host.url}/login")
        await expect(page.locator("main")).to_contain_text("link")
        assert await violations(page) == []
        await picture(page, "desktop-login")
        await page.get_by_label("token").fill(host.token)
        await page.get_by_role("button", name="Log in").click()
        await expect(page).to_have_url(f"{host.url}/")
        assert person.errors == []
        assert person.foreign == []


async def test_a_follow_up_during_a_slow_answer_and_a_stop(host: Host, browser: Browser) -> None:
    async with window(browser, host.url, DESKTOP) as person:
        page = await person.tab(await host.link())
        await say(page, "work slowly for 60 seconds")
        await expect(page.locator("#working")).to_be_visible()
        await expect(page.locator("#elapsed")).to_have_text(re.compile(r"0:0[1-9]"))
        await say(page, "and one thing more")
        await expect(messages(page)).to_have_count(2)
        await expect(page.locator("#working")).to_be_visible()
        await picture(page, "desktop-working")

        await page.reload()  # who comes in the middle sees it too
        await expect(page.locator("#working")).to_be_visible()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator("#working")).to_be_hidden()
        await expect(messages(page).first.locator(".remark")).to_have_text("stopped")
        await say(page, "hello")
        await expect(replies(page).last).to_contain_text("demo agent")
        assert await shown(page) == await stored(host)
        assert person.errors == []


def seconds(elapsed: str) -> int:
    minutes, _, rest = elapsed.partition(":")
    return 60 * int(minutes) + int(rest)


async def test_the_time_an_answer_takes_goes_on_after_a_cut_line(
    host: Host, browser: Browser
) -> None:
    async with wired(host.url) as wire, window(browser, wire.url, DESKTOP) as person:
        page = await person.tab((await host.link()).replace(host.url, wire.url))
        await say(page, "work slowly for 60 seconds")
        await expect(page.locator("#elapsed")).to_have_text("0:04")
        wire.cut()
        await expect(page.locator("#banner")).to_contain_text("away")
        await expect(page.locator("#banner")).to_contain_text("back")
        await expect(page.locator("#working")).to_be_visible()
        assert seconds(await page.locator("#elapsed").inner_text()) >= 5
        await page.reload()
        await expect(page.locator("#working")).to_be_visible()
        assert seconds(await page.locator("#elapsed").inner_text()) >= 5
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator("#working")).to_be_hidden()


async def test_what_there_is_to_try_is_answered_where_a_trigger_is_needed(
    host: Host, browser: Browser
) -> None:
    async with host.client() as operator:
        body = {"chat": "web:shy", "name": "Shy", "folder": "shy", "requires_trigger": True}
        assert (await operator.post("/api/groups", json=body)).status_code == 201
    async with window(browser, host.url, DESKTOP) as person:
        page = await person.tab(await host.link())
        await page.goto(f"{host.url}/?chat=web:shy")
        await picture(page, "desktop-trigger")
        for button in await page.locator("[data-say]").all():
            assert await button.evaluate("(node) => node.scrollWidth <= node.clientWidth")
        await page.get_by_role("button", name="where are you?").click()
        await expect(replies(page)).to_contain_text("sandbox", ignore_case=True)
        assert person.errors == []


async def test_without_script_one_can_still_talk(host: Host, browser: Browser) -> None:
    shape = {**DESKTOP, "java_script_enabled": False}
    async with window(browser, host.url, shape) as person, host.client() as operator:
        page = await person.tab(await host.link())
        await expect(page).to_have_url(f"{host.url}/")
        await expect(page.locator("noscript")).to_be_visible()
        await say(page, "hello")
        await expect(page).to_have_url(re.compile(r"/\?chat=web%3Amain#m-"))
        await expect(messages(page).first).to_contain_text("hello")
        await expect(page.locator("noscript")).to_be_in_viewport()
        async with asyncio.timeout(PATIENCE):
            while len(await stored(host)) < 2:
                await operator.get("/api/status")
        await page.reload()
        await expect(replies(page)).to_have_count(1)
        await picture(page, "desktop-without-script")


async def test_a_host_that_is_killed_and_comes_back_under_an_open_page(
    tmp_path: Path, browser: Browser
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    home = tmp_path / "home"
    async with (
        running(home, None, "--port", port) as first,
        window(browser, first.url, DESKTOP) as person,
    ):
        page = await person.tab(await first.link())
        await say(page, "hello")
        await expect(replies(page)).to_have_count(1)
        await say(page, "work slowly for 3 seconds")
        await expect(page.locator("#working")).to_be_visible()
        first.kill()
        await first.process.wait()
        await expect(page.locator("#banner")).to_contain_text("away")
        await picture(page, "desktop-away")
        await say(page, "said while it was away")
        await expect(page.locator(".pending")).to_have_count(1)

        async with running(home, None, "--port", port) as second:
            await expect(page.locator("#banner")).to_be_hidden()
            await expect(page.locator(".pending")).to_have_count(0)
            await expect(page.get_by_text("said while it was away").first).to_be_visible()
            await expect(page.locator("#working")).to_be_hidden()
            await expect(page.locator("#log > .reply").nth(1)).to_be_visible()
            await say(page, "echo the last word")
            await expect(replies(page).last).to_contain_text("the last word")
            ids = await shown(page)
            assert ids == await stored(second)
            assert len(ids) == len(set(ids))


async def test_two_tabs_show_the_same(host: Host, browser: Browser) -> None:
    async with window(browser, host.url, DESKTOP) as person:
        one = await person.tab(await host.link())
        other = await person.tab(host.url)
        await say(one, "hello")
        await expect(replies(other)).to_have_count(1)
        await say(other, "echo from the other tab")
        await expect(replies(one)).to_have_count(2)
        assert await shown(one) == await shown(other) == await stored(host)
        assert person.errors == []


async def test_a_draft_survives_a_reload_and_lines_are_kept(host: Host, browser: Browser) -> None:
    async with window(browser, host.url, DESKTOP) as person:
        page = await person.tab(await host.link())
        await page.locator("#text").press_sequentially("one")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("two")
        await page.reload()
        await expect(page.locator("#text")).to_have_value("one\ntwo")
        await page.locator("#text").press("Enter")
        await expect(page.locator("#text")).to_have_value("")
        await expect(messages(page).first.locator("br")).to_have_count(1)
        await page.reload()
        await expect(page.locator("#text")).to_have_value("")


async def test_logging_out_leaves_no_words_in_the_browser(host: Host, browser: Browser) -> None:
    async with window(browser, host.url, DESKTOP) as person:
        page = await person.tab(await host.link())
        list_ = await person.tab(f"{host.url}/sessions")
        await page.fill("#text", "a word for nobody else")
        assert "nobody" in await page.evaluate("JSON.stringify(localStorage)")
        await page.route("**/say", lambda route: route.abort())
        await page.keyboard.press("Enter")
        await expect(page.locator(".pending")).to_have_count(1)
        await page.fill("#text", "and another")

        await list_.get_by_role("button", name="Log out").click()
        for tab in (list_, page):
            await expect(tab).to_have_url(f"{host.url}/login")
            kept = "JSON.stringify([localStorage, sessionStorage])"
            assert await tab.evaluate(kept) == "[{},{}]"


async def test_a_revoked_browser_is_led_to_the_door(host: Host, browser: Browser) -> None:
    async with (
        window(browser, host.url, DESKTOP) as mine,
        window(browser, host.url, DESKTOP) as theirs,
    ):
        page = await theirs.tab(await host.link())
        list_ = await mine.tab(await host.link())
        await list_.goto(f"{host.url}/sessions")
        await list_.get_by_role("button", name="Revoke").click()
        await expect(list_.get_by_role("button", name="Revoke")).to_have_count(0)
        await page.fill("#text", "what I was about to say")
        await expect(page).to_have_url(f"{host.url}/login#kept")
        await expect(page.locator("#kept")).to_contain_text("is kept in this tab")
        await page.goto(await host.link())
        await expect(page.locator("#text")).to_have_value("what I was about to say")


async def test_a_page_that_is_open_drops_what_is_forgotten(host: Host, browser: Browser) -> None:
    async with window(browser, host.url, DESKTOP) as person, host.client() as operator:
        page = await person.tab(await host.link())
        await say(page, "a secret")
        await expect(replies(page)).to_have_count(1)
        await operator.post("/api/forget", json={"chat": "web:main"})
        await expect(messages(page)).to_have_count(0)
        await say(page, "a fresh start")
        await expect(replies(page)).to_have_count(1)
        assert await shown(page) == await stored(host)
        assert person.errors == []


async def test_a_chat_that_is_gone_is_told_from_a_host_that_is_away(
    host: Host, browser: Browser
) -> None:
    group = {"chat": "web:side", "name": "Side", "folder": "side", "requires_trigger": False}
    async with window(browser, host.url, DESKTOP) as person, host.client() as operator:
        await operator.post("/api/groups", json=group)
        await (await person.tab(await host.link())).close()
        page = await person.tab(f"{host.url}/?chat=web:side")
        await say(page, "hello")
        await expect(replies(page)).to_have_count(1)
        await operator.delete("/api/groups/side?purge=true")
        await expect(messages(page)).to_have_count(0)
        await expect(page.locator("#banner")).to_contain_text("no longer here")
        await picture(page, "desktop-gone")
        await say(page, "too late")
        await expect(page.locator(".pending .remark")).to_contain_text("not sent: no web chat")
        await expect(page.locator("#text")).to_have_value("too late")
        await page.get_by_role("link", name="To the chats that are here").click()
        await expect(page).to_have_url(f"{host.url}/")
        assert await violations(page) == []


@pytest.mark.parametrize("first", [4501, pytest.param(1, marks=pytest.mark.full)])
async def test_five_thousand_messages_are_read_page_by_page(
    tmp_path: Path, browser: Browser, first: int
) -> None:
    home = tmp_path / "home"
    async with running(home):
        pass
    chat = ChatId("web:main")
    now = SystemClock().now()

    def fill(tx: Tx) -> None:
        for number in range(1, 5001):
            message = Message(
                id=MessageId(f"h{number}"),
                chat=chat,
                seq=tx.chats.raise_head(chat),
                ext_id=f"h{number}",
                sender="operator",
                sender_name="operator",
                text=f"Message **{number}** of many",
                at=now,
                kind=Kind.TEXT,
                state=State.ANSWERED,
            )
            tx.messages.add(message)

    async with open_store(home / "hallporter.db", SystemClock()) as store:
        await store.write(fill)
    async with running(home) as host, window(browser, host.url, PHONE) as person:
        page = await person.tab(await host.link())
        await expect(messages(page)).to_have_count(50)
        await expect(page.locator("#m-h5000")).to_be_in_viewport()
        await page.evaluate("document.getElementById('scroll').scrollTop = 0")
        await page.locator("#m-h4901").wait_for(state="attached")  # scrolling up is asking too
        for number in range(4851, first - 1, -50):
            await page.locator("#earlier").evaluate("(button) => button.click()")
            await page.locator(f"#m-h{number}").wait_for(state="attached")
        await expect(page.locator("#earlier")).to_be_visible(visible=first > 1)
        ids = await shown(page)
        assert ids == [f"m-h{number}" for number in range(first, 5001)]
        async with host.client() as operator:
            await operator.post("/api/chats/web:main/messages", json={"text": "echo still quick"})
        await expect(replies(page)).to_contain_text("still quick")
        await page.get_by_role("button", name="Newest").click()
        await expect(replies(page)).to_be_in_viewport()
        await expect(page.locator("#newest")).to_be_hidden()
        assert person.errors == []


ZALGO = "z" + "\u0300\u0301\u0302\u0489" * 200
PILE = "z" + "\u0301\u0323" * 60
PILES = (
    f"{PILE} {PILE}\n\n# {PILE}\n\n- {PILE}\n- more\n\n> {PILE}\n\n`{PILE}`\n\n"
    f"```{PILE[:9]}\n{PILE}\n```\n\n| a | b |\n|---|---|\n| {PILE} | x |\n| y | {PILE} |"
)
HOSTILE = [
    "<script>window.broken = 1</script>",
    "<img src=x onerror='window.broken = 1'>",
    "<svg/onload=window.broken=1>",
    "[click](javascript:window.broken=1)",
    "![pixel](https://evil.example/pixel.png)",
    "</li></ol></main><h1>broken out</h1><style>*{display:none}</style>",
    "```html\n</code></pre><script>window.broken = 1</script>\n```",
    "\u202egnp.exe\u202c \u2066\u2067nested \u202dand never closed",
    "zero\u200bwidth\u200djoiner\ufeffmark\u2060",
    ZALGO,
    "W" * 5000,
    "`" + "c" * 3000 + "`",
    "```\n" + "long line " * 500 + "\n```",
    "|" + "wide cell |" * 60 + "\n|" + "-|" * 60 + "\n|" + "x |" * 60,
    "> " * 60 + "deep",
    "🏳️‍🌈👩‍👩‍👧‍👦" * 200,
    "\ufffd\ufffe\uffff \U000e0001 \x07 \x1b[31mred",
    "مرحبا بالعالم، هذا نص طويل من اليمين إلى اليسار مع `code` و English inside",
    "{{ 7*7 }} {% raw %} ${7*7} <%= 1 %>",
    "# " + "H" * 400,
    "|a" * 350 + "|\n" + "|-" * 350 + "|\n" + "|\n" * 190,
    "[a]: https://a.example/" + "x" * 9000 + "\n\n" + "[a]" * 6000,
    PILES,
]
MOST_MARKUP = 2_000_000  # characters: some ten times what was said


@pytest.mark.parametrize("shape", SHAPES)
async def test_hostile_words_neither_act_nor_break_the_page(
    host: Host, browser: Browser, shape: str
) -> None:
    async with host.client() as operator:
        body: dict[str, Any] = {
            "chat": "web:wild",
            "name": f"<b>{ZALGO[:99]}\u202e",
            "folder": "wild",
        }
        assert (await operator.post("/api/groups", json=body)).status_code == 201
        for number, text in enumerate(HOSTILE):
            saying = {"text": text, "sender": HOSTILE[-1 - number][:200], "id": f"wild{number}"}
            answer = await operator.post("/api/chats/web:wild/messages", json=saying)
            assert answer.status_code == 202
        async with window(browser, host.url, SHAPES[shape]) as person:
            page = await person.tab(await host.link())
            await page.goto(f"{host.url}/?chat=web:wild")
            await expect(messages(page)).to_have_count(len(HOSTILE))
            for number, text in enumerate(HOSTILE):  # and once more, as they come by the stream
                saying = {"text": text, "sender": text[:200], "id": f"again{number}"}
                await operator.post("/api/chats/web:wild/messages", json=saying)
            await expect(messages(page)).to_have_count(2 * len(HOSTILE))
            assert await page.evaluate("window.broken") is None
            assert await page.locator("h1").count() == 1
            assert await overflow(page) <= 0
            assert not await scrolls(page)
            assert await page.evaluate("document.body.outerHTML.length") < MOST_MARKUP
            await expect(page.locator("#text")).to_be_visible()
            await expect(page.locator("#text")).to_be_in_viewport()
            assert await violations(page) == []
            await picture(page, f"{shape}-hostile")
            assert person.errors == []
            assert person.foreign == []


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_pile_of_accents_stays_in_its_own_place(
    host: Host, browser: Browser, shape: str
) -> None:
    async with host.client() as operator, window(browser, host.url, SHAPES[shape]) as person:
        body = {"chat": "web:wild", "name": PILE, "folder": "wild"}
        assert (await operator.post("/api/groups", json=body)).status_code == 201
        for sender in ("Bob", PILE, "operator"):
            saying = {"text": PILES, "sender": sender, "id": f"by-{sender[:1]}"}
            await operator.post("/api/chats/web:wild/messages", json=saying)
        page = await person.tab(await host.link())
        await expect(page).to_have_url(f"{host.url}/")
        await page.goto(f"{host.url}/?chat=web:wild")
        await expect(messages(page)).to_have_count(3)
        await page.fill("#text", PILE)
        await page.locator("#text").blur()
        await picture(page, f"{shape}-accents")
        parts = ["#text", ".title h1", "nav li:last-child", "#m-by-z .who"]
        for message in ("#m-by-z", "#m-by-o"):
            block = f"{message} .body"
            parts += [block, *(f"{block} {tag} >> nth=0" for tag in ("p", "h3", "li", "pre"))]
            parts += [f"{block} {tag} >> nth=-1" for tag in ("blockquote p", "th", "td")]
        assert [part for part in parts if await spills(page, page.locator(part))] == []


async def test_what_needs_the_operator_is_on_the_page(tmp_path: Path, browser: Browser) -> None:
    settings(tmp_path / "home", '[host]\nmin_free_disk = "900000g"\n')
    async with (
        running(tmp_path / "home") as host,
        window(browser, host.url, DESKTOP) as person,
    ):
        page = await person.tab(await host.link())
        await expect(page.locator("#notices")).to_contain_text("disk is nearly full")
        await expect(page.locator("#welcome")).to_be_visible()
        await picture(page, "desktop-notice")
        assert await violations(page) == []
        assert person.errors == []


async def test_the_keyboard_reaches_everything_in_order(host: Host, browser: Browser) -> None:
    async with window(browser, host.url, DESKTOP) as person:
        page = await person.tab(await host.link())
        await say(page, "hello")
        await expect(replies(page)).to_have_count(1)
        await page.locator("body").evaluate("() => document.activeElement.blur()")
        reached = []
        for _ in range(7):
            await page.keyboard.press("Tab")
            reached.append(
                await page.evaluate(
                    "(document.activeElement.id || document.activeElement.textContent.trim())"
                    ".split(/\\s+/)[0]"
                )
            )
        assert "Sessions" in reached
        assert reached.index("Sessions") < reached.index("text")
