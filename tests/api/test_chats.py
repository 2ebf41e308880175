from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from hallporter.domain.chat import ChatSeen
from hallporter.domain.ids import ChatId, Folder, TokenId
from hallporter.domain.message import Inbound, Message
from hallporter.domain.token import digest
from tests.api.front import MAIN, Front

if TYPE_CHECKING:
    from hallporter.books import Tx

MESSAGES = f"/api/chats/{MAIN}/messages"


async def stored(front: Front, id: str) -> Message:
    fates = await front.desk.story.fates(id)
    return fates[0].message


async def test_what_is_said_is_stored_and_its_id_told(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.post(MESSAGES, json={"text": "hello"})
    assert answer.status_code == 202
    assert set(answer.json()) == {"id", "chat"}
    assert answer.json()["chat"] == MAIN
    assert (await stored(front, answer.json()["id"])).text == "hello"


async def test_the_same_id_again_is_harmless(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        first = await operator.post(MESSAGES, json={"text": "hello", "id": "my-1"})
        again = await operator.post(MESSAGES, json={"text": "hello", "id": "my-1"})
        page = await operator.get(MESSAGES)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == again.json() == {"id": "my-1", "chat": MAIN}
    assert len(page.json()["messages"]) == 1


@pytest.mark.parametrize("id", ["", "a b", "x" * 129, "ä", "a\n"])
async def test_an_id_of_another_shape_is_refused(front: Front, id: str) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.post(MESSAGES, json={"text": "hello", "id": id})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["field"] == "id"


@pytest.mark.parametrize("text", ["", "  \n\t "])
async def test_saying_nothing_is_refused(front: Front, text: str) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.post(MESSAGES, json={"text": text})
    assert answer.status_code == 400
    assert answer.json()["error"] == "INVALID_REQUEST"
    assert answer.json()["details"][0]["field"] == "text"


async def test_a_consumer_speaks_as_the_subject_of_the_token(front: Front) -> None:
    await front.register()
    async with front.client(await front.token()) as consumer:
        body = {"text": "hello", "sender": "Queen of Hearts", "id": "c1"}
        assert (await consumer.post(MESSAGES, json=body)).status_code == 202
    message = await stored(front, "c1")
    assert (message.sender, message.sender_name) == ("alice", "Queen of Hearts")


async def test_an_operator_may_speak_for_another(front: Front) -> None:
    await front.register()
    named = await stored(front, await front.say("hello", sender=" Bob  Stone "))
    unnamed = await stored(front, await front.say("hello"))
    assert (named.sender, named.sender_name) == ("Bob Stone", "Bob Stone")
    assert (unnamed.sender, unnamed.sender_name) == ("operator", "operator")


async def test_a_chat_that_is_not_registered_is_not_found(front: Front) -> None:
    async with front.client() as operator:
        said = await operator.post(MESSAGES, json={"text": "hello"})
        page = await operator.get(MESSAGES)
        events = await operator.get(f"/api/chats/{MAIN}/events")
    assert [said.status_code, page.status_code, events.status_code] == [404, 404, 404]
    assert said.json()["error"] == "NOT_FOUND"


async def test_a_consumer_cannot_tell_another_chat_from_none(front: Front) -> None:
    await front.register()
    await front.register("web:other", "other")
    async with front.client(await front.token()) as consumer:
        there = await consumer.get("/api/chats/web:other/messages")
        nowhere = await consumer.get("/api/chats/web:nowhere/messages")
        said = await consumer.post("/api/chats/web:other/messages", json={"text": "hello"})
    assert there.status_code == nowhere.status_code == said.status_code == 404
    assert there.content.replace(b"other", b"nowhere") == nowhere.content
    assert there.headers.keys() == nowhere.headers.keys()


async def test_a_consumer_token_without_a_chat_opens_none(front: Front) -> None:
    await front.register()
    async with front.client(await front.token(chat=None)) as consumer:
        assert (await consumer.get(MESSAGES)).status_code == 404


async def test_a_chat_of_another_network_can_be_read_but_not_written_here(front: Front) -> None:
    await front.register("fake:family@x.y", "family")
    async with front.client() as operator:
        said = await operator.post("/api/chats/fake:family@x.y/messages", json={"text": "hello"})
        page = await operator.get("/api/chats/fake%3Afamily%40x.y/messages")
    assert said.status_code == 400
    assert "belongs to channel fake" in said.json()["message"]
    assert page.json() == {"messages": [], "next": None}


async def test_a_chat_whose_channel_is_not_here_cannot_be_written_to(front: Front) -> None:
    await front.register("fake:family", "family")

    def bring(tx: Tx) -> None:
        (here,) = tx.groups.all()
        away = replace(here, chat=ChatId("4915@g.us"), folder=Folder("away"))
        seen = ChatSeen(chat=away.chat, channel="whatsapp", at=away.added_at, name="Away")
        tx.chats.seen(seen)
        tx.groups.add(away)

    await front.store.write(bring)
    async with front.client() as operator:
        said = await operator.post("/api/chats/4915@g.us/messages", json={"text": "hello"})
    assert said.status_code == 400
    assert "this chat's channel is not set up here" in said.json()["message"]


async def test_a_message_has_the_promised_fields(front: Front) -> None:
    await front.register()
    id = await front.say("hello", sender="Bob")
    async with front.client() as operator:
        (message,) = (await operator.get(MESSAGES)).json()["messages"]
    assert message.pop("at").endswith("Z")
    assert message == {"id": id, "chat": MAIN, "sender": "Bob", "text": "hello", "is_bot": False}


async def test_an_answer_carries_its_turn(front: Front) -> None:
    await front.register()
    await front.say("hello")
    opened = await front.open_turn()
    await front.answer(opened, "good day")
    async with front.client() as operator:
        messages = (await operator.get(MESSAGES)).json()["messages"]
    assert [(one["is_bot"], one["turn"]) for one in messages] == [
        (False, opened.turn.id),
        (True, opened.turn.id),
    ]


async def test_pages_follow_one_another_to_the_end(front: Front) -> None:
    await front.register()
    ids = [await front.say(f"message {number}") for number in range(5)]
    seen: list[str] = []
    pages = 0
    async with front.client() as operator:
        after: str | None = None
        while pages == 0 or after:
            query = {"limit": "2"} | ({"after": after} if after else {})
            page = (await operator.get(MESSAGES, params=query)).json()
            seen += [message["id"] for message in page["messages"]]
            after = page["next"]
            pages += 1
    assert seen == ids
    assert pages == 3


@pytest.mark.parametrize("limit", ["0", "201", "-1", "many"])
async def test_a_limit_outside_one_to_two_hundred_is_refused(front: Front, limit: str) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.get(MESSAGES, params={"limit": limit})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["field"] == "limit"


async def test_fifty_messages_are_a_page_unless_asked_otherwise(front: Front) -> None:
    await front.register()
    for number in range(51):
        await front.say(f"message {number}")
    async with front.client() as operator:
        page = (await operator.get(MESSAGES)).json()
    assert len(page["messages"]) == 50
    assert page["next"] == page["messages"][-1]["id"]


async def test_after_names_a_message_of_this_chat(front: Front) -> None:
    await front.register()
    await front.register("web:other", "other")
    elsewhere = await front.say("hello", "web:other")
    async with front.client() as operator:
        for after in (elsewhere, "nothing"):
            answer = await operator.get(MESSAGES, params={"after": after})
            assert answer.status_code == 400
            assert answer.json()["details"][0]["field"] == "after"


async def test_a_fate_tells_state_steps_replies_and_turn(front: Front) -> None:
    await front.register()
    id = await front.say("hello")
    async with front.client() as operator:
        queued = (await operator.get(f"/api/messages/{id}/fate")).json()
        opened = await front.open_turn()
        running = (await operator.get(f"/api/messages/{id}/fate")).json()
        await front.answer(opened, "good day")
        answered = (await operator.get(f"/api/messages/{id}/fate")).json()
        reply = (await operator.get(f"/api/messages/{answered['replies'][0]}/fate")).json()
    assert [one["state"] for one in (queued, running, answered)] == [
        "queued",
        "running",
        "answered",
    ]
    assert queued.keys() == {"id", "chat", "state", "steps", "replies", "message", "said"}
    assert (queued["message"]["text"], queued["said"]) == ("hello", [])
    assert [said["text"] for said in answered["said"]] == ["good day"]
    assert queued["steps"][0] == {"at": queued["steps"][0]["at"], "what": "stored"}
    assert running["turn"] == {"id": opened.turn.id, "state": "running"}
    assert answered["turn"]["state"] == "answered"
    assert len(answered["replies"]) == 1
    assert reply["state"] == "pending"


@pytest.mark.parametrize("id", ["a/b", "/", "x/fate", "50%/2?#"])
async def test_a_network_s_id_may_have_any_characters_in_it(front: Front, id: str) -> None:
    await front.register("fake:family", "family")
    said = Inbound(
        chat=ChatId("fake:family"),
        ext_id=id,
        sender="ada",
        sender_name="Ada",
        text="hello",
        sent_at=front.clock.now(),
    )
    await front.desk.intake.accept(said)
    async with front.client() as operator:
        answer = await operator.get(f"/api/messages/{quote(id, safe='')}/fate")
    assert (answer.status_code, answer.json()["message"]["text"]) == (200, "hello")


async def test_a_fate_of_nothing_is_not_found(front: Front) -> None:
    async with front.client() as operator:
        answer = await operator.get("/api/messages/nothing/fate")
    assert answer.status_code == 404


async def test_an_id_that_two_people_chose_names_the_other_message_too(front: Front) -> None:
    await front.register()
    first = await front.say("one", id="same", sender="Ann")
    second = await front.say("two", id="same", sender="Bob")
    async with front.client() as operator:
        fate = (await operator.get("/api/messages/same/fate")).json()
    assert (fate["id"], fate["others"]) == (first, [second])


async def test_a_slash_line_is_answered_by_the_host(front: Front) -> None:
    await front.register()
    id = await front.say("/whoami", sender="Bob")
    async with front.client() as operator:
        fate = (await operator.get(f"/api/messages/{id}/fate")).json()
        messages = (await operator.get(MESSAGES)).json()["messages"]
    assert fate["state"] == "command"
    assert "Bob" in messages[1]["text"]
    assert "turn" not in messages[1]


async def test_half_of_a_character_does_not_cost_the_message(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.post(
            MESSAGES,
            content=rb'{"text": "a \ud800 b"}',
            headers={"content-type": "application/json"},
        )
    message = await stored(front, answer.json()["id"])
    assert message.text == "a ? b"


@pytest.mark.parametrize("name", ["operator", "Andy", "  ANDY "])
async def test_a_consumer_cannot_go_by_a_name_of_the_house(front: Front, name: str) -> None:
    await front.register()
    async with front.client(await front.token()) as consumer:
        answer = await consumer.post(MESSAGES, json={"text": "hello", "sender": name})
    assert answer.status_code == 400
    assert answer.json()["error"] == "INVALID_REQUEST"


@pytest.mark.parametrize("name", ["operator", "bob"])
async def test_a_consumers_token_never_speaks_as_the_operator(front: Front, name: str) -> None:
    await front.register()
    made = await front.desk.tokens.create(role="consumer_app", subject="alice", chat=MAIN)
    of_old = replace(made.token, subject="operator")  # from before such a subject was refused

    def fn(tx: Tx) -> None:
        tx.tokens.add(replace(of_old, id=TokenId("tok_old"), digest=digest("hp_old")))

    await front.store.write(fn)
    async with front.client("hp_old") as consumer:
        answer = await consumer.post(MESSAGES, json={"text": "hello", "sender": name})
    assert answer.status_code == 400
    page = await front.desk.story.page(MAIN, after=None, limit=5)
    assert page.messages == []
