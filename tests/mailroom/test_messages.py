"""What an agent sends by itself: shown as it should be, once, and nothing internal in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hallporter.domain.ids import TurnId
from hallporter.domain.message import Kind
from hallporter.domain.turn import Turn
from tests.mailroom.post import FAMILY, MAIN, WORK, chat_of, open_post

if TYPE_CHECKING:
    from pathlib import Path

    from hallporter.books import Tx

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"text": "hello"}, ["hello"]),
        ({"text": "hello", "sender": "Researcher"}, ["Researcher: hello"]),
        ({"text": "hello", "sender": " The\nCook "}, ["The Cook: hello"]),
        ({"text": "hello", "sender": ""}, ["hello"]),
        ({"text": "a <internal>b</internal>c"}, ["a c"]),
        ({"text": "a <internal>b"}, ["a"]),
        ({"text": "<internal>b</internal>"}, []),
        ({"text": "<internal>b</internal>", "sender": "Researcher"}, []),
        ({"text": " "}, []),
        ({"text": "b</internal> c", "sender": "<internal>a"}, ["b c"]),
        ({"text": "b> c", "sender": "</internal"}, ["b> c"]),
    ],
)
async def test_how_words_are_shown(
    tmp_path: Path, message: dict[str, Any], shown: list[str]
) -> None:
    async with open_post(tmp_path) as post:
        told = await post.answer(FAMILY, {"type": "message", **message})
        assert told["ok"]
        assert told["sent"] is bool(shown)
        assert await post.said(chat_of(FAMILY)) == shown


async def test_words_are_a_reply_in_the_transcript_and_on_their_way_out(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        told = await post.answer(FAMILY, {"type": "message", "text": "hello"})

        def look(tx: Tx) -> None:
            (message,) = tx.messages.page(chat_of(FAMILY), 0, 10)
            (row,) = tx.outbox.pending(chat_of(FAMILY), 10)
            (carried,) = tx.commands.all(FAMILY, 10)
            assert message.kind is Kind.REPLY
            assert row.key == message.ext_id == f"cmd:{carried.id}"
            assert (message.id, message.turn) == (told["message_id"], None)

        await post.store.read(look)


async def test_words_belong_to_the_turn_that_runs_in_their_own_chat(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:

        def begin(tx: Tx) -> None:
            now = post.clock.now()
            tx.turns.add(
                Turn(
                    id=TurnId("t_1"),
                    chat=chat_of(MAIN),
                    epoch=1,
                    attempt=1,
                    session_no=0,
                    waiting_since=now,
                    started_at=now,
                    cursor=0,
                    piped=0,
                )
            )

        await post.store.write(begin)
        for target in (MAIN, WORK):
            request = {"type": "message", "text": "hello", "chatJid": chat_of(target)}
            assert (await post.answer(MAIN, request))["ok"]
        own, other = await post.store.read(
            lambda tx: [tx.messages.page(chat_of(folder), 0, 10)[0] for folder in (MAIN, WORK)]
        )
        assert (own.turn, other.turn) == ("t_1", None)
        assert (own.why, other.why) == ("", "asked by 'main'")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"text": "hello", "sender": "x" * 65}, "the sender's name has 65 characters"),
        ({"text": "hello", "file": "report.pdf"}, "there is no file 'report.pdf'"),
        ({}, "text: is missing"),
        ({"text": ["hello"]}, "text: must be a string, not a list"),
    ],
)
async def test_what_cannot_be_sent_is_told(
    tmp_path: Path, message: dict[str, Any], why: str
) -> None:
    async with open_post(tmp_path) as post:
        told = await post.answer(FAMILY, {"type": "message", **message})
        assert not told["ok"]
        assert why in told["error"]
        assert await post.said(chat_of(FAMILY)) == []
