"""Removing a group through the door, and messages that are too long for it."""

from __future__ import annotations

import json

from hallporter.domain.errors import RefusedError
from hallporter.domain.ids import ChatId
from tests.api.front import MAIN, Front

FAMILY = ChatId("web:family")
MESSAGES = f"/api/chats/{MAIN}/messages"


async def test_a_group_s_agent_is_dismissed_whether_its_files_go_or_not(front: Front) -> None:
    await front.register(FAMILY, "family")
    await front.register("web:work", "work")
    async with front.client() as operator:
        await operator.delete("/api/groups/family")
        await operator.delete("/api/groups/work?purge=true")
    assert (front.dismissed, front.evicted) == (["family"], ["web:work"])


async def test_a_purge_takes_what_was_said_and_a_removal_does_not(front: Front) -> None:
    for chat, folder in ((FAMILY, "family"), ("web:work", "work")):
        await front.register(chat, folder)
        await front.say("hello", chat, id=folder)
    async with front.client() as operator:
        await operator.delete("/api/groups/family")
        await operator.delete("/api/groups/work?purge=true")
        kept = await operator.get("/api/messages/family/fate")
        gone = await operator.get("/api/messages/work/fate")
    assert (kept.json()["state"], gone.status_code) == ("ignored", 404)


async def test_a_purge_that_fails_keeps_the_group_and_can_be_repeated(front: Front) -> None:
    await front.register(FAMILY, "family")
    await front.say("hello", FAMILY)
    front.stuck.append(RefusedError("groups/family cannot be removed"))
    async with front.client() as operator:
        failed = await operator.delete("/api/groups/family?purge=true")
        there = await operator.get("/api/groups/family")
        again = await operator.delete("/api/groups/family?purge=true")
    assert (failed.status_code, failed.json()["error"]) == (409, "REFUSED")
    assert (there.status_code, again.status_code) == (200, 204)
    assert json.loads(again.headers["x-removed"])["messages"] == 1


async def test_a_text_has_a_limit_and_the_refusal_says_it(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        most = await operator.post(MESSAGES, json={"text": "天" * 100_000})
        more = await operator.post(MESSAGES, json={"text": "x" * 100_001})
    assert most.status_code == 202
    assert (more.status_code, more.json()["error"]) == (413, "TOO_LARGE")
    assert "100001 characters, and one message has at most 100000" in more.json()["message"]
