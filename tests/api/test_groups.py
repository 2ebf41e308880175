"""Groups over HTTP: names, whose words count, and the chats to choose from."""

from __future__ import annotations

import pytest

from hallporter.domain.chat import ChatSeen
from hallporter.domain.ids import ChatId
from tests.api.front import Front
from tests.fakes.clock import START

FAMILY = {"chat": "web:family", "name": "Family", "folder": "family"}


async def test_a_group_has_an_assistants_name_of_its_own_and_gives_it_back(front: Front) -> None:
    async with front.client() as operator:
        made = await operator.post("/api/groups", json={**FAMILY, "assistant_name": "Mona"})
        other = await operator.patch("/api/groups/family", json={"name": "Us"})
        back = await operator.patch("/api/groups/family", json={"assistant_name": None})
        wrong = await operator.patch("/api/groups/family", json={"assistant_name": "a\nb"})
    assert (made.json()["data"]["assistant_name"], made.json()["data"]["trigger"]) == (
        "Mona",
        "@Mona",
    )
    assert other.json()["data"]["assistant_name"] == "Mona"
    assert (back.json()["data"]["assistant_name"], back.json()["data"]["trigger"]) == (
        None,
        "@Andy",
    )
    assert (wrong.status_code, wrong.json()["error"]) == (400, "INVALID_REQUEST")


async def test_nobody_can_show_themselves_as_the_assistant_of_a_group(front: Front) -> None:
    await front.register("web:family", "family", assistant_name="Mona")
    token = await front.token(chat="web:family")
    async with front.client(token) as alice:
        for name in ("mona", "Andy", "operator"):
            answer = await alice.post(
                "/api/chats/web:family/messages", json={"text": "hi", "sender": name}
            )
            assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_REQUEST")


async def test_who_may_talk_is_set_changed_and_lifted(front: Front) -> None:
    async with front.client() as operator:
        made = await operator.post(
            "/api/groups", json={**FAMILY, "senders": {"allow": ["bob", "ada"]}}
        )
        stored = await operator.patch("/api/groups/family", json={"senders": {"others": "store"}})
        nobody = await operator.patch("/api/groups/family", json={"senders": {"allow": []}})
        listed = await operator.get("/api/groups")
        everyone = await operator.patch("/api/groups/family", json={"senders": None})
    assert made.json()["data"]["senders"] == {"allow": ["ada", "bob"], "others": "ignore"}
    assert stored.json()["data"]["senders"] == {"allow": ["ada", "bob"], "others": "store"}
    assert nobody.json()["data"]["senders"] == {"allow": [], "others": "store"}
    assert listed.json()["data"][0]["senders"] == {"allow": [], "others": "store"}
    assert everyone.json()["data"]["senders"] is None


@pytest.mark.parametrize(
    "senders",
    [
        {"others": "store"},
        {"allow": ["a"], "others": "drop"},
        {"allow": "ada"},
        {"allow": [""]},
        {"allowed": ["ada"]},
    ],
)
async def test_a_rule_that_cannot_be_is_refused(front: Front, senders: object) -> None:
    await front.register("web:family", "family")
    async with front.client() as operator:
        answer = await operator.patch("/api/groups/family", json={"senders": senders})
    assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_REQUEST")


async def test_a_consumer_is_known_by_the_tokens_subject_and_the_operator_by_his(
    front: Front,
) -> None:
    await front.register("web:family", "family", senders={"allow": ["alice"]})
    token = await front.token(chat="web:family")
    fates = []
    async with front.client(token) as alice, front.client() as operator:
        for who, body in (
            (alice, {"text": "hi", "sender": "Someone"}),
            (operator, {"text": "hi"}),
            (operator, {"text": "hi", "sender": "alice"}),
        ):
            said = await who.post("/api/chats/web:family/messages", json=body)
            fate = await operator.get(f"/api/messages/{said.json()['id']}/fate")
            fates.append(fate.json()["state"])
    assert fates == ["queued", "ignored", "queued"]


async def test_every_chat_that_was_seen_is_listed_for_the_operator(front: Front) -> None:
    await front.register("web:family", "family")
    seen = ChatSeen(
        chat=ChatId("fake:club"), channel="fake", at=START.replace(year=2030), name="The club"
    )
    await front.desk.intake.on_chat(seen)
    async with front.client() as operator, front.client(await front.token()) as consumer:
        answer = await operator.get("/api/chats")
        hidden = await consumer.get("/api/chats")
    body = answer.json()
    assert (body["success"], body["count"]) == (True, 2)
    assert body["data"][0] == {
        "chat": "fake:club",
        "name": "The club",
        "channel": "fake",
        "is_group": False,
        "last_activity": body["data"][0]["last_activity"],
        "is_registered": False,
    }
    assert (body["data"][1]["chat"], body["data"][1]["folder"]) == ("web:family", "family")
    assert (hidden.status_code, hidden.json()["error"]) == (404, "NOT_FOUND")
