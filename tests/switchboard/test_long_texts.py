"""Long texts, and many of them: what is read at once has a limit, and nothing is left out by it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hallporter.domain.backlog import MAX_BYTES
from hallporter.domain.message import Message
from hallporter.domain.portion import PAGE_SIZE
from hallporter.stores.messages import SqlMessages
from tests.switchboard.house import CHAT, House, open_house

LONG = "x" * (PAGE_SIZE // 3)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path, is_serving=False) as opened:
        await opened.register()
        yield opened


async def test_a_page_of_long_messages_is_cut_and_says_that_there_are_more(house: House) -> None:
    said = [(await house.hear(LONG)).id for _ in range(7)]

    first = await house.story.page(CHAT, after=None, limit=200)
    second = await house.story.page(CHAT, after=first.next, limit=200)
    last = await house.story.page(CHAT, after=second.next, limit=200)

    pages = [[message.id for message in page.messages] for page in (first, second, last)]
    assert pages == [said[:3], said[3:6], said[6:]]
    assert (first.next, second.next, last.next) == (said[2], said[5], None)


async def test_one_message_that_is_too_long_for_a_page_is_a_page(house: House) -> None:
    said = [(await house.hear("x" * (PAGE_SIZE + 1))).id, (await house.hear("short")).id]

    first = await house.story.page(CHAT, after=None, limit=200)
    second = await house.story.page(CHAT, after=first.next, limit=200)

    assert [message.id for message in first.messages] == said[:1]
    assert ([message.id for message in second.messages], second.next) == (said[1:], None)


@pytest.mark.rule("R16")
async def test_only_the_words_that_may_go_in_are_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [await house.hear("x" * (MAX_BYTES // 2)) for _ in range(6)]
    read: list[Message] = []
    backlog = SqlMessages.backlog

    def reading(self: SqlMessages, *place: object) -> list[Message]:
        found = list(backlog(self, *place))  # type: ignore[arg-type]
        read.extend(found)
        return found

    monkeypatch.setattr(SqlMessages, "backlog", reading)
    opened = await house.store.write(lambda tx: house.clerk.open(tx, CHAT))

    assert opened is not None
    assert [line.id for line in opened.batch.lines] == [message.id for message in said[4:]]
    assert opened.batch.omitted == 4
    assert [message.id for message in read] == [message.id for message in said[4:]]
    assert [await house.state(m) for m in said] == ["omitted"] * 4 + ["running"] * 2


@pytest.mark.rule("R16")
async def test_characters_of_several_bytes_count_by_their_bytes(house: House) -> None:
    said = [await house.hear("天" * (MAX_BYTES // 6)) for _ in range(5)]

    opened = await house.store.write(lambda tx: house.clerk.open(tx, CHAT))

    assert opened is not None
    assert [line.id for line in opened.batch.lines] == [message.id for message in said[3:]]
    assert opened.batch.omitted == 3
    assert [await house.state(m) for m in said] == ["omitted"] * 3 + ["running"] * 2
