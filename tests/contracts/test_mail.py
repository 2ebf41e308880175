"""What every mailroom keeps: one test for each clause of the port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hallporter.domain.group import Group
from hallporter.ports import Mail
from tests.agents.room import group as a_group
from tests.fakes.mail import FakeMail
from tests.mailroom.post import FAMILY, chat_of, open_post

ADAPTERS = ("mailroom", "fake")
PATIENCE = 5.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A mailroom under the contract, and the hand of an agent in its folder."""

    mail: Mail
    group: Group
    send: Callable[[str], None]
    said: Callable[[], Awaitable[list[str]]]


@pytest.fixture(params=ADAPTERS)
async def adapter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Adapter]:
    if request.param == "fake":
        yield _fake()
        return
    async with open_post(tmp_path) as post:
        group = next(one for one in await post.groups.all() if one.folder == FAMILY)

        def send(text: str) -> None:
            post.ask(FAMILY, {"type": "message", "chatJid": group.chat, "text": text})

        async def said() -> list[str]:
            return await post.said(chat_of(FAMILY))

        yield Adapter(mail=post.room, group=group, send=send, said=said)


def _fake() -> Adapter:
    mail, heard = FakeMail(), list[str]()

    def send(text: str) -> None:
        async def arrive() -> None:
            heard.append(text)

        mail.lying.append(arrive)

    async def said() -> list[str]:
        return heard

    return Adapter(mail=mail, group=a_group(FAMILY), send=send, said=said)


@pytest.mark.rule("R12")
async def test_after_a_drain_what_lay_there_has_been_said_in_order(adapter: Adapter) -> None:
    texts = [f"word {number}" for number in range(20)]
    for text in texts:
        adapter.send(text)

    async with asyncio.timeout(PATIENCE):
        await adapter.mail.drain(adapter.group)

    assert await adapter.said() == texts


async def test_a_drain_of_an_empty_folder_says_nothing_and_does_not_wait(adapter: Adapter) -> None:
    async with asyncio.timeout(PATIENCE):
        for _ in range(3):
            await adapter.mail.drain(adapter.group)

    assert await adapter.said() == []


async def test_what_is_sent_between_two_drains_is_said_once(adapter: Adapter) -> None:
    adapter.send("first")
    await adapter.mail.drain(adapter.group)
    adapter.send("second")
    await adapter.mail.drain(adapter.group)
    await adapter.mail.drain(adapter.group)

    assert await adapter.said() == ["first", "second"]


async def test_what_is_announced_is_a_list_of_tasks_and_an_object_of_groups(
    adapter: Adapter,
) -> None:
    snapshots = await adapter.mail.announce(adapter.group)

    assert isinstance(json.loads(snapshots.tasks), list)
    assert isinstance(json.loads(snapshots.groups), dict)
