"""Notices and forgetting over HTTP: for operators, and for nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.front import MAIN, Front, open_front


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    async with open_front(tmp_path) as opened:
        yield opened


async def test_open_notices_are_listed_and_stand_in_the_status(front: Front) -> None:
    await front.register(is_main=True)
    await front.desk.notices.look()  # this front's disk is full
    async with front.client() as operator:
        listed = (await operator.get("/api/notices")).json()
        status = (await operator.get("/api/status")).json()["data"]
    assert listed["count"] == 1
    [notice] = listed["data"]
    assert (notice["key"], notice["told"]) == ("disk", True)
    assert notice["text"].startswith("The disk is nearly full")
    assert status["notices"] == listed["data"]


async def test_a_chat_is_forgotten_and_the_answer_says_how_much(front: Front) -> None:
    await front.register()
    name = await front.say("a secret")
    async with front.client() as operator:
        answer = await operator.post("/api/forget", json={"chat": MAIN})
        gone = await operator.get(f"/api/messages/{name}/fate")
        left = await operator.get(f"/api/chats/{MAIN}/messages")
    assert answer.status_code == 200
    assert answer.json()["data"]["removed"]["messages"] == 1
    assert gone.status_code == 404
    assert left.json() == {"messages": [], "next": None}


async def test_an_unknown_chat_and_a_bad_body_are_refused(front: Front) -> None:
    async with front.client() as operator:
        unknown = await operator.post("/api/forget", json={"chat": "web:nowhere"})
        bad = await operator.post("/api/forget", json={"chats": "web:main"})
    assert (unknown.status_code, unknown.json()["error"]) == (404, "NOT_FOUND")
    assert (bad.status_code, bad.json()["error"]) == (400, "INVALID_REQUEST")


async def test_to_a_consumer_they_do_not_exist(front: Front) -> None:
    await front.register()
    async with front.client(await front.token()) as consumer:
        notices = await consumer.get("/api/notices")
        forget = await consumer.post("/api/forget", json={"chat": MAIN})
    assert [notices.status_code, forget.status_code] == [404, 404]
