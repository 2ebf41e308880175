"""A host that is cut down between a request and its end: the next one finishes it, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hallporter.domain.command import Box, SendMessage
from hallporter.domain.errors import StoreUnavailableError
from hallporter.domain.ids import CommandId
from hallporter.mailroom.claims import Claims
from hallporter.mailroom.folders import Folders
from hallporter.mailroom.handling import read
from hallporter.mailroom.results import Results
from hallporter.switchboard.commands import Asked
from tests.fakes.ids import counting_id
from tests.mailroom.post import FAMILY, MAIN, Post, chat_of, open_post, until

if TYPE_CHECKING:
    from pathlib import Path

    from hallporter.mailroom.claims import Claim

pytestmark = pytest.mark.anyio

HELLO = {"type": "message", "text": "hello"}
NAME = "000001-hello~there.json"


def claim(post: Post) -> Claim:
    """What a host does first; then it is gone."""
    folders = Folders(post.data / "ipc")
    claims = Claims(post.data / "claims", folders=folders, new_id=counting_id)
    (taken,) = claims.take(FAMILY, Box.MESSAGES, 10).claims
    return taken


async def carry_out(post: Post, claim: Claim) -> None:
    command = read(claim).command
    assert command is not None
    asked = Asked(id=claim.id, folder=claim.folder, box=claim.box, name=claim.name, command=command)
    await post.commands.carry_out(asked)


async def leave_a_request(path: Path) -> None:
    async with open_post(path) as post:
        await post.quiet()
    async with open_post(path, is_serving=False) as post:
        post.ask(FAMILY, HELLO, name=NAME)


async def judge(path: Path) -> None:
    """The next host, and the one after it."""
    for _ in range(2):
        async with open_post(path) as post:
            await post.quiet()
            assert await post.said(chat_of(FAMILY)) == ["hello"]
            told = post.result(FAMILY, NAME)
            assert told is not None
            assert told["ok"]
            rows = await post.store.read(lambda tx: tx.commands.all(FAMILY, 10))
            assert [(row.box, row.name, row.kind) for row in rows] == [
                ("messages", NAME, "message")
            ]
            assert post.put_aside() == {}


async def test_before_the_claim(tmp_path: Path) -> None:
    await leave_a_request(tmp_path)
    await judge(tmp_path)


async def test_between_the_claim_and_the_commit(tmp_path: Path) -> None:
    await leave_a_request(tmp_path)
    async with open_post(tmp_path, is_serving=False) as post:
        claim(post)
    await judge(tmp_path)


async def test_between_the_commit_and_the_result(tmp_path: Path) -> None:
    await leave_a_request(tmp_path)
    async with open_post(tmp_path, is_serving=False) as post:
        await carry_out(post, claim(post))
    await judge(tmp_path)


async def test_between_the_result_and_the_removal(tmp_path: Path) -> None:
    await leave_a_request(tmp_path)
    async with open_post(tmp_path, is_serving=False) as post:
        await carry_out(post, claim(post))
        Results(Folders(post.data / "ipc")).put(FAMILY, {NAME: b"{}"}, post.clock.now())
    await judge(tmp_path)


async def test_the_claims_of_an_earlier_host_come_before_all_that_was_left_lying(
    tmp_path: Path,
) -> None:
    async with open_post(tmp_path) as post:
        await post.quiet()
    async with open_post(tmp_path, is_serving=False) as post:
        post.ask(FAMILY, {"type": "message", "text": "first"}, name="2.json")
        claim(post)
        post.ask(FAMILY, {"type": "message", "text": "second"}, name="1.json")
    async with open_post(tmp_path) as post:
        await post.quiet()
        assert await post.said(chat_of(FAMILY)) == ["first", "second"]


async def test_a_claim_that_is_no_request_is_put_aside_by_the_next_host(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        await post.quiet()
    claims = tmp_path / "data" / "claims" / FAMILY
    (claims / "c_1~messages~a.json").symlink_to("/etc/passwd")
    (claims / "c_2~tasks~b.json").mkdir()
    (claims / "c_3~messages!~odd.json").write_text('{"type": "message", "text": "x"}')
    (claims / "rubbish").write_text("rubbish")
    async with open_post(tmp_path) as post:
        await post.quiet()
        assert list(post.put_aside()) == [
            "family-a.json",
            "family-b.json",
            "family-odd.json",
            "family-unnamed.json",
        ]
        assert await post.said(chat_of(FAMILY)) == []


async def test_a_store_that_is_away_for_a_while_loses_nothing(tmp_path: Path) -> None:
    away = [StoreUnavailableError("no room on the disk") for _ in range(3)]
    async with open_post(tmp_path, troubles=away) as post:
        name = post.ask(FAMILY, HELLO)
        await post.soon(lambda: post.result(FAMILY, name))
        assert await post.said(chat_of(FAMILY)) == ["hello"]
        assert post.put_aside() == {}


async def test_what_breaks_is_put_aside_and_told_and_the_next_one_acts(tmp_path: Path) -> None:
    async with open_post(tmp_path, troubles=[ZeroDivisionError()]) as post:
        told = await post.answer(FAMILY, HELLO)
        assert told == {"ok": False, "error": "an unexpected ZeroDivisionError"}
        await post.quiet()
        assert list(post.put_aside().values()) == [told["error"]]
        assert (await post.answer(FAMILY, HELLO))["ok"]


async def test_what_cannot_be_put_aside_stays_claimed_until_it_can(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        errors = post.data / "ipc" / "errors"
        errors.rmdir()
        errors.write_text("no folder")
        post.ask(FAMILY, b"rubbish", box="tasks", name="x.json")
        assert (await post.answer(FAMILY, HELLO))["ok"]
        await until(lambda: not post.lying())
        assert len(post.claimed()) == 1
        errors.unlink()
    async with open_post(tmp_path) as post:
        await post.quiet()
        assert list(post.put_aside()) == ["family-x.json"]


async def test_the_same_id_acts_once_whatever_it_asks_for(tmp_path: Path) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        for text in ("hello", "again"):
            asked = Asked(
                id=CommandId("c_1"),
                folder=MAIN,
                box=Box.MESSAGES,
                name="a.json",
                command=SendMessage(text=text),
            )
            await post.commands.carry_out(asked)
        assert await post.said(chat_of(MAIN)) == ["hello"]
