from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING

import httpx
import pytest

from hallporter.api.app import create_app
from hallporter.domain.ids import MessageId
from hallporter.domain.message import Kind, Message, State
from hallporter.domain.notice import Notice
from hallporter.domain.trigger import is_trigger
from hallporter.web.routes import routes
from hallporter.web.typesetter import Typesetter
from tests.api.front import MAIN, served
from tests.api.test_stream import Stream
from tests.fakes.clock import START
from tests.web.hall import Hall, csrf_in

if TYPE_CHECKING:
    from hallporter.books import Tx

SAY = f"/chats/{MAIN}/say"


async def say(client: httpx.AsyncClient, text: str, **more: str) -> httpx.Response:
    csrf = csrf_in(await client.get("/"))
    headers = {"X-CSRF-Token": csrf, "Accept": "application/json"}
    return await client.post(SAY, data={"text": text, **more}, headers=headers)


def message_of(text: str) -> Message:
    return Message(
        id=MessageId("m1"),
        chat=MAIN,
        seq=1,
        ext_id="m1",
        sender="operator",
        sender_name="operator",
        text=text,
        at=START,
        kind=Kind.TEXT,
        state=State.QUEUED,
    )


async def history(hall: Hall, count: int) -> None:
    def fn(tx: Tx) -> None:
        for _ in range(count):
            seq = tx.chats.raise_head(MAIN)
            message = message_of(f"message number {seq}")
            id_ = MessageId(f"h{seq}")
            tx.messages.add(replace(message, id=id_, ext_id=id_, seq=seq, state=State.ANSWERED))

    await hall.front.store.write(fn)


@contextlib.asynccontextmanager
async def following(hall: Hall, *, after: int) -> AsyncIterator[Stream]:
    """One open page's stream."""
    async with hall.browser() as browser, served(hall.front) as url:
        cookies = {"hp_session": browser.cookies["hp_session"]}
        address = f"/chats/{MAIN}/events?after={after}"
        async with (
            httpx.AsyncClient(base_url=url, cookies=cookies) as client,
            client.stream("GET", address) as answer,
        ):
            yield Stream(answer)


async def test_a_first_visitor_sees_who_answers_and_what_to_try(hall: Hall) -> None:
    async with hall.browser() as client:
        page = (await client.get("/")).text
    assert "demo agent" in page
    assert "bubblewrap" in page
    assert page.count("data-say=") == 3
    assert "docs/protocol.md" in page
    assert "docs/api.md" in page


def offered(page: str) -> list[str]:
    return [unescape(words) for words in re.findall(r'data-say="([^"]*)"', page)]


@pytest.mark.parametrize(
    ("trigger", "opening"),
    [("@Andy", "@Andy "), ("@Ändi", "@Ändi "), (r"\bandy\b", "@Andy "), ("^porter", None)],
)
async def test_what_there_is_to_try_wakes_a_chat_that_needs_a_trigger(
    hall: Hall, trigger: str, opening: str | None
) -> None:
    more = {"requires_trigger": True, "trigger": trigger}
    await hall.front.register("web:reader", "reader", **more)
    async with hall.browser() as client:
        page = (await client.get("/?chat=web:reader")).text
    if opening is None:  # nobody can guess what a pattern is made for
        assert offered(page) == []
        assert f"<code>{trigger}</code>" in page
    else:
        assert len(offered(page)) == 3
        assert all(is_trigger(trigger, words) for words in offered(page))
        assert all(words.startswith(opening) for words in offered(page))
        assert f'placeholder="Begin with {opening.strip()}"' in page


async def test_without_script_a_form_leads_back_to_its_chat(hall: Hall) -> None:
    await hall.front.register("web:reader", "reader")
    async with hall.browser() as client:
        page = await client.get("/?chat=web:reader")
        form = {"text": "hello", "csrf": csrf_in(page)}
        answer = await client.post("/chats/web:reader/say", data=form)
        place, _, mark = answer.headers["location"].partition("#")
        assert (answer.status_code, place) == (303, "/?chat=web%3Areader")
        shown = (await client.get(place)).text
        refused = await client.post("/chats/web:reader/say", data={**form, "text": " "})
    assert "<noscript>" in page.text
    assert f'id="{mark}"' in shown
    assert '<p dir="auto">hello</p>' in shown
    assert refused.status_code == 400
    assert "say something" in refused.text
    assert refused.headers["content-type"].startswith("text/html")


async def test_only_what_the_operator_said_is_drawn_as_mine(hall: Hall) -> None:
    async with hall.front.client(await hall.front.token()) as consumer:
        for name in ("You", "Andy\u200b"):
            saying = {"text": f"I am {name}", "sender": name, "id": name[:3]}
            answer = await consumer.post(f"/api/chats/{MAIN}/messages", json=saying)
            assert answer.status_code == 202
    async with hall.browser() as client:
        await say(client, "hello", id="w_1")
        page = (await client.get("/")).text
    mine, *others = [item for item in page.split("<li ")[1:] if 'data-seq="' in item][::-1]
    assert "<bdi>You</bdi>" in mine
    assert "mine" in mine
    assert "guest" not in mine
    assert len(others) == 2
    for other in others:
        assert "mine" not in other
        assert '<span class="tag">guest</span>' in other


async def test_a_message_is_set_once_however_many_read_along() -> None:
    count = 0

    def article(message: Message) -> str:
        nonlocal count
        count += 1
        return f"<li>{message.text}</li>"

    typesetter = Typesetter(article)
    short, long = message_of("short"), message_of("long " * 1000)
    for message in (short, long):
        told = await asyncio.gather(*(typesetter.event(message) for _ in range(50)))
        assert {json.loads(one)["html"] for one in told} == {f"<li>{message.text}</li>"}
    assert count == 2
    changed = json.loads(await typesetter.event(replace(short, text="other")))
    assert changed["html"] == "<li>other</li>"


async def test_a_page_that_is_loaded_again_is_not_set_again(hall: Hall) -> None:
    await history(hall, 60)
    set_: list[str] = []

    def article(message: Message) -> str:
        set_.append(message.id)
        return f"<li>{message.text}</li>"

    hall.front.app = create_app(hall.front.desk, routes(hall.lobby, article=article))
    async with hall.browser() as client:
        for _ in range(3):
            assert "<li>message number 60</li>" in (await client.get("/")).text
            await client.get(f"/chats/{MAIN}/earlier?before=60")
    assert len(set_) == 51  # 11 to 60 on the page, 10 to 59 before the last


async def test_what_is_set_is_not_kept_for_ever() -> None:
    typesetter = Typesetter(lambda message: message.text)
    for number in range(80):
        await typesetter.event(message_of(str(number) * 100_000))
    assert typesetter.kept < 5_000_000


BOMBS = [
    "|a" * 350 + "|\n" + "|-" * 350 + "|\n" + "|\n" * 190,
    "|a" * 60 + "|\n" + "|-" * 60 + "|\n" + "|\n" * 5000,
    "> " * 15_000,
    "[a]: https://a.example/" + "x" * 9000 + "\n\n" + "[a]" * 6000,
    "`" * 30_000,
    "*a _b " * 5000,
    "![" * 10_000,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:12])
async def test_a_little_text_makes_no_large_page(hall: Hall, bomb: str) -> None:
    async with hall.browser() as client:
        empty = len((await client.get("/")).text)
        await hall.front.say(bomb)
        page = (await client.get("/")).text
        earlier = (await client.get(f"/chats/{MAIN}/earlier?before=9")).text
    async with following(hall, after=0) as stream:
        told = await stream.next()
    assert told is not None
    limit = 20 * len(bomb) + 10_000
    assert len(page) - empty < limit
    assert len(earlier) < limit
    assert len(told.data["html"]) < limit


async def test_what_is_said_is_stored_and_shown(hall: Hall) -> None:
    async with hall.browser() as client:
        answer = await say(client, "hello **there**", id="w_1")
        assert (answer.status_code, answer.json()) == (202, {"id": "w_1"})
        page = (await client.get("/")).text
    assert 'id="m-w_1"' in page
    assert "<strong>there</strong>" in page
    assert "welcome" not in page


async def test_saying_it_again_is_harmless(hall: Hall) -> None:
    async with hall.browser() as client:
        for _ in range(2):
            assert (await say(client, "hello", id="w_1")).status_code == 202
    page = await hall.front.desk.story.page(MAIN, after=None, limit=9)
    assert len(page.messages) == 1


@pytest.mark.parametrize(("text", "id_"), [("  \n", "w_1"), ("hello", "a b"), ("hello", "x" * 129)])
async def test_what_cannot_be_said_is_refused_with_a_reason(
    hall: Hall, text: str, id_: str
) -> None:
    async with hall.browser() as client:
        answer = await say(client, text, id=id_)
        assert answer.status_code == 400
        assert answer.json()["message"]


async def test_a_chat_that_is_not_registered_or_not_of_the_web_is_not_found(hall: Hall) -> None:
    async with hall.browser() as client:
        for chat in ("web:none", "fake:family"):
            assert (await client.get(f"/?chat={chat}")).status_code == 404
            assert (await client.get(f"/chats/{chat}/earlier?before=1")).status_code == 404


async def test_web_chats_are_listed_and_can_be_chosen(hall: Hall) -> None:
    await hall.front.register("web:reader", "reader", requires_trigger=True)
    await hall.front.register("fake:family", "family")
    async with hall.browser() as client:
        page = (await client.get("/?chat=web:reader")).text
    assert 'href="/?chat=web%3Amain"' in page
    assert "fake" not in page
    assert 'data-chat="web:reader"' in page
    assert "Begin with @Andy" in page


async def test_the_newest_fifty_come_first_and_the_rest_on_asking(hall: Hall) -> None:
    await history(hall, 120)
    async with hall.browser() as client:
        page = (await client.get("/")).text
        assert page.count('class="message') == 50 + 1  # and the one for what is on its way
        assert 'id="m-h71"' in page
        assert 'id="m-h70"' not in page
        seen = []
        before, more = 71, "yes"
        while more == "yes":
            answer = await client.get(f"/chats/{MAIN}/earlier?before={before}")
            more = answer.headers["x-earlier"]
            seen.append(answer.text.count('class="message'))
            before -= seen[-1]
    assert seen == [50, 20]
    assert before == 1


@pytest.mark.parametrize("before", ["", "x", "-1", "9" * 19, "١"])
async def test_a_place_that_is_no_number_is_refused(hall: Hall, before: str) -> None:
    async with hall.browser() as client:
        answer = await client.get(f"/chats/{MAIN}/earlier", params={"before": before})
        assert answer.status_code == 400


async def test_a_message_tells_its_fate(hall: Hall) -> None:
    message = await hall.front.say("hello")
    opened = await hall.front.open_turn()
    await hall.front.answer(opened, "Good day")
    async with hall.browser() as client:
        story = (await client.get(f"/fates/{message}")).text
        assert "answered" in story
        assert opened.turn.id in story
        assert (await client.get("/fates/none")).status_code == 404


async def test_whoever_comes_or_comes_again_is_told_how_long_a_turn_has_run(hall: Hall) -> None:
    await hall.front.say("hello")
    await hall.front.open_turn()
    hall.front.clock.advance(timedelta(seconds=42))
    async with following(hall, after=1) as stream:
        told = await stream.next()
    assert told is not None
    assert (told.kind, told.data["state"], told.data["age"]) == ("turn", "started", 42)


async def test_the_stream_brings_rendered_messages_and_resumes(hall: Hall) -> None:
    await history(hall, 3)
    async with hall.browser() as browser, served(hall.front) as url:
        cookies = {"hp_session": browser.cookies["hp_session"]}
        async with httpx.AsyncClient(base_url=url, cookies=cookies) as client:
            address = f"/chats/{MAIN}/events?after=1"
            async with client.stream("GET", address) as answer:
                stream = Stream(answer)
                first = await stream.next()
                assert first is not None
                assert first.data["id"] == "h2"
                assert "message number 2" in first.data["html"]
                assert (await stream.next()).id == "3"  # type: ignore[union-attr]
                await hall.front.say("and *more* " + "word " * 1000)
                last = await stream.next()
                assert last is not None
                assert "<em>more</em>" in last.data["html"]
            headers = {"Last-Event-ID": "3"}
            async with client.stream("GET", address, headers=headers) as answer:
                resumed = await Stream(answer).next()
                assert resumed is not None
                assert resumed.id == last.id


async def test_the_stream_of_a_revoked_session_ends(hall: Hall) -> None:
    async with hall.browser() as browser, served(hall.front) as url:
        cookies = {"hp_session": browser.cookies["hp_session"]}
        async with (
            httpx.AsyncClient(base_url=url, cookies=cookies) as client,
            client.stream("GET", f"/chats/{MAIN}/events") as answer,
        ):
            stream = Stream(answer)
            await hall.front.say("hello")
            assert await stream.next() is not None
            (session,) = await hall.front.desk.sessions.all()
            await hall.front.desk.sessions.revoke(session.id)
            hall.front.clock.advance(timedelta(seconds=15))
            assert await stream.next() is None


async def test_names_and_texts_are_escaped_wherever_they_stand(hall: Hall) -> None:
    evil = "</title><script>alert(1)</script>\u202e"
    await hall.front.register("web:evil", "evil", name=evil)
    await hall.front.say(evil, "web:evil", sender=evil)
    async with hall.browser() as client:
        page = (await client.get("/?chat=web:evil")).text
    assert "<script>alert" not in page
    assert page.count("<script") == 1


async def test_what_needs_the_operator_stands_on_the_page(hall: Hall) -> None:
    async with hall.browser() as client:
        assert (await client.get("/notices")).text.strip() == ""
        text = "The disk is nearly full: `<1 MiB>` free."
        hall.raised.append(Notice(key="disk", text=text, raised_at=START))
        for path in ("/", "/notices"):
            page = (await client.get(path)).text
            assert "One thing needs your attention" in page
            assert "<code>&lt;1 MiB&gt;</code>" in page


async def test_a_house_without_a_web_chat_says_what_to_do(hall: Hall) -> None:
    await hall.front.register("fake:family", "family", is_main=True)
    await hall.front.desk.groups.remove("main")
    async with hall.browser() as client:
        answer = await client.get("/")
    assert answer.status_code == 404
    assert "hallporter groups add" in answer.text


async def test_the_pages_hide_nothing_of_the_api(hall: Hall) -> None:
    async with hall.front.client() as operator:
        assert (await operator.get("/api/status")).status_code == 200
        assert (await operator.get("/nowhere")).status_code == 404
        paths = json.loads((await operator.get("/openapi.json")).text)["paths"]
    assert "/login" not in paths
