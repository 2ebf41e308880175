from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from hallporter.domain.happening import TypingChanged
from hallporter.domain.ids import ChatId
from hallporter.stores.feed import MemoryFeed
from tests.api.front import ADMIN, MAIN, PATIENCE, Front, open_front, served

EVENTS = f"/api/chats/{MAIN}/events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: str
    data: dict[str, Any]
    id: str | None


class Stream:
    """A reader of server-sent events, as a browser is one."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()
        self.comments = 0

    async def next(self) -> Event | None:
        """The next event; None at the end of the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "data" in fields:
                    data = json.loads(fields["data"])
                    return Event(kind=fields["event"], data=data, id=fields.get("id"))
                else:
                    fields = {}
        return None

    async def texts(self, count: int) -> list[str]:
        """The texts of the next `count` messages, whatever comes between them."""
        found: list[str] = []
        while len(found) < count:
            event = await self.next()
            assert event is not None
            if event.kind == "message":
                found.append(event.data["text"])
        return found


@pytest.fixture
async def url(front: Front) -> AsyncIterator[str]:
    await front.register()
    async with served(front) as address:
        yield address


@contextlib.asynccontextmanager
async def listening(
    url: str, path: str = EVENTS, token: str = ADMIN, **headers: str
) -> AsyncIterator[Stream]:
    headers = {"authorization": f"Bearer {token}", **headers}
    async with (
        httpx.AsyncClient(base_url=url, timeout=PATIENCE, headers=headers) as client,
        client.stream("GET", path) as answer,
    ):
        yield Stream(answer)


async def test_it_begins_with_what_comes_next(front: Front, url: str) -> None:
    await front.say("before")
    async with listening(url) as stream:
        id = await front.say("after", sender="Bob")
        event = await stream.next()
    assert stream.answer.headers["content-type"].startswith("text/event-stream")
    assert event is not None
    assert (event.kind, event.id) == ("message", "2")
    assert event.data.pop("at").endswith("Z")
    assert event.data == {"id": id, "chat": MAIN, "sender": "Bob", "text": "after", "is_bot": False}


async def test_it_resumes_behind_the_last_event(front: Front, url: str) -> None:
    for number in range(1, 4):
        await front.say(f"message {number}")
    async with listening(url, **{"last-event-id": "1"}) as stream:
        assert await stream.texts(2) == ["message 2", "message 3"]


async def test_it_catches_up_on_more_text_than_is_read_in_one_go(front: Front, url: str) -> None:
    texts = [f"{number}".ljust(90_000, "x") for number in range(25)]
    for text in texts:
        await front.say(text)
    async with listening(url, **{"last-event-id": "0"}) as stream:
        assert await stream.texts(25) == texts


async def test_it_begins_behind_a_named_message(front: Front, url: str) -> None:
    first = await front.say("first")
    await front.say("second")
    async with listening(url, f"{EVENTS}?after={first}") as stream:
        assert await stream.texts(1) == ["second"]


async def test_the_last_event_counts_more_than_the_first_address(front: Front, url: str) -> None:
    first = await front.say("first")
    for number in (2, 3):
        await front.say(f"message {number}")
    async with listening(url, f"{EVENTS}?after={first}", **{"last-event-id": "2"}) as stream:
        assert await stream.texts(1) == ["message 3"]


@pytest.mark.parametrize("id", ["x", "-1", "1.5", "²", "9" * 30])
async def test_a_last_event_that_is_no_number_is_refused(front: Front, id: str) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.get(EVENTS, headers={b"last-event-id": id.encode("latin1")})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["field"] == "Last-Event-ID"


async def test_a_number_from_another_database_begins_with_what_comes_next(
    front: Front, url: str
) -> None:
    await front.say("before")
    async with listening(url, **{"last-event-id": "1000"}) as stream:
        await front.say("after")
        assert await stream.texts(1) == ["after"]


async def test_a_turn_is_told_from_start_to_end(front: Front, url: str) -> None:
    async with listening(url) as stream:
        id = await front.say("hello")
        opened = await front.open_turn()
        await front.web.typing(ChatId(MAIN), is_typing=True)
        await front.answer(opened, "good day")
        await front.web.typing(ChatId(MAIN), is_typing=False)
        events = [await stream.next() for _ in range(6)]
    told = [(event.kind, event.data) for event in events if event]
    turn = {"chat": MAIN, "turn": opened.turn.id, "covers": [id]}
    assert [kind for kind, _ in told] == ["message", "turn", "typing", "message", "turn", "typing"]
    assert told[1][1] == {**turn, "state": "started", "age": 0}
    assert told[2][1] == {"chat": MAIN, "typing": True}
    assert told[3][1]["text"] == "good day"
    assert told[4][1] == {**turn, "state": "answered"}
    assert told[5][1] == {"chat": MAIN, "typing": False}
    assert [event.id for event in events if event] == ["1", None, None, "2", None, None]


async def test_who_comes_during_a_turn_is_told_of_it(front: Front, url: str) -> None:
    id = await front.say("hello")
    opened = await front.open_turn()
    front.clock.advance(timedelta(seconds=7.5))
    async with listening(url) as stream:
        turn = await stream.next()
        typing = await stream.next()
        await front.answer(opened, None)
        end = await stream.next()
    assert turn is not None
    assert typing is not None
    assert end is not None
    told = {"chat": MAIN, "turn": opened.turn.id, "state": "started", "covers": [id], "age": 7.5}
    assert turn.data == told
    assert typing.data["typing"] is True
    assert end.data["state"] == "silent"


async def test_other_chats_are_not_heard(front: Front, url: str) -> None:
    await front.register("web:other", "other")
    async with listening(url) as stream:
        await front.say("elsewhere", "web:other")
        await front.say("here")
        assert await stream.texts(1) == ["here"]


async def test_nothing_is_lost_or_doubled_while_messages_pour_in(front: Front, url: str) -> None:
    async def pour() -> None:
        for number in range(300):
            await front.say(f"message {number}")

    seen: list[str] = []
    last = "0"
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pour())
        for _ in range(10):  # the reader drops the connection and comes again
            async with listening(url, **{"last-event-id": last}) as stream:
                for _ in range(30):
                    event = await stream.next()
                    assert event is not None
                    assert event.id is not None
                    seen.append(event.data["text"])
                    last = event.id
    assert seen == [f"message {number}" for number in range(300)]


async def test_a_reader_that_lags_is_given_what_it_missed(tmp_path: Path) -> None:
    async with open_front(tmp_path, feed=MemoryFeed(capacity=2)) as front:
        await front.register()
        async with served(front) as url, listening(url) as stream:
            says = [front.say(f"message {number}") for number in range(100)]
            await asyncio.gather(*says)
            assert len(set(await stream.texts(100))) == 100


async def test_after_a_lag_the_present_turn_is_told(tmp_path: Path) -> None:
    async with open_front(tmp_path, feed=MemoryFeed(capacity=1)) as front:
        await front.register()
        async with served(front) as url, listening(url) as stream:
            await front.say("hello")
            await stream.texts(1)
            news = TypingChanged(chat=MAIN, typing=False)
            opened = await front.open_turn()
            for _ in range(3):  # faster than anyone reads
                front.feed.publish(news)
            turn = await stream.next()
            typing = await stream.next()
    assert turn is not None
    assert typing is not None
    assert (turn.data["turn"], turn.data["state"]) == (opened.turn.id, "started")
    assert typing.data["typing"] is True


async def test_streams_end_with_the_feed(front: Front, url: str) -> None:
    async with listening(url) as stream:
        front.feed.close()
        assert await stream.next() is None


async def test_a_silent_stream_is_kept_alive(front: Front, url: str) -> None:
    async with listening(url) as stream:
        front.clock.advance(timedelta(seconds=16))
        await front.say("hello")
        await front.say("again")
        await stream.texts(2)
        front.feed.close()
        assert await stream.next() is None
    assert stream.comments == 1


async def test_a_stream_ends_when_its_token_does(front: Front, url: str) -> None:
    async with listening(url, token=await front.token()) as stream:
        await front.say("hello")
        await stream.texts(1)
        (token,) = await front.desk.tokens.all()
        await front.desk.tokens.revoke(token.id)
        assert await stream.next() is None


async def test_a_stream_ends_when_its_token_is_too_old(front: Front, url: str) -> None:
    made = await front.desk.tokens.create(
        role="consumer_app", subject="ada", chat=MAIN, expires_in=timedelta(seconds=10)
    )
    async with listening(url, token=made.secret) as stream:
        await front.say("hello")
        await stream.texts(1)
        front.clock.advance(timedelta(seconds=16))
        assert await stream.next() is None


@pytest.mark.parametrize("purge", ["false", "true"])
async def test_a_stream_ends_when_its_chat_has_no_group_any_more(
    front: Front, url: str, purge: str
) -> None:
    await front.register("web:other", "other")
    async with listening(url, "/api/chats/web:other/events") as stream, front.client() as operator:
        await front.say("hello", "web:other")
        await stream.texts(1)
        await operator.delete(f"/api/groups/other?purge={purge}")
        while (event := await stream.next()) is not None:
            assert event.kind == "forgotten"
        answer = await operator.get("/api/chats/web:other/events")
    assert answer.status_code == 404


async def test_who_reads_along_hears_that_all_is_forgotten(front: Front, url: str) -> None:
    await front.say("a secret")
    async with listening(url, **{"last-event-id": "0"}) as stream:
        await stream.texts(1)
        await front.desk.forgetting.forget(MAIN)
        event = await stream.next()
        assert event is not None
        assert (event.kind, event.id, event.data) == ("forgotten", None, {"chat": MAIN})
        await front.say("a fresh start")
        assert await stream.texts(1) == ["a fresh start"]


async def test_who_comes_again_hears_of_what_was_forgotten_meanwhile(
    front: Front, url: str
) -> None:
    await front.say("a secret")
    await front.say("another")
    async with listening(url, **{"last-event-id": "1"}) as stream:
        assert await stream.texts(1) == ["another"]
    await front.desk.forgetting.forget(MAIN)
    await front.say("hello")
    async with listening(url, **{"last-event-id": "2"}) as stream:
        event = await stream.next()
        assert event is not None
        assert event.kind == "forgotten"
        assert await stream.texts(1) == ["hello"]
    async with listening(url, **{"last-event-id": "3"}) as stream:
        await front.say("again")
        event = await stream.next()
        assert event is not None
        assert event.kind == "message"


async def test_a_reader_that_leaves_is_forgotten(front: Front, url: str) -> None:
    async with listening(url) as stream:
        await front.say("hello")
        await stream.texts(1)
    async with asyncio.timeout(PATIENCE):
        while front.feed._readers:  # noqa: ASYNC110  the server notices by itself
            await asyncio.sleep(0.01)
