"""What a group that is removed leaves behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hallporter.domain.brief import Block
from hallporter.domain.errors import FencedError
from hallporter.domain.ids import ChatId
from hallporter.switchboard.progress import Opened, Progress
from tests.switchboard.house import CHAT, House, open_house

ANSWER = Block(is_error=False, text="hi", session_id="s", error="", through=99, idle=True)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path, is_serving=False) as opened:
        yield opened


async def claim(house: House, chat: ChatId = CHAT) -> Opened:
    opened = await house.store.write(lambda tx: house.clerk.open(tx, chat))
    assert opened is not None
    return opened


async def answer(house: House, opened: Opened) -> None:
    await house.store.write(lambda tx: house.clerk.block(tx, opened.turn, ANSWER, Progress()))


async def test_what_waits_for_a_removed_group_is_ignored_and_says_why(house: House) -> None:
    await house.register(trigger="@Andy")
    waiting = await house.hear("by the way")
    queued = await house.hear("@Andy hello")

    await house.groups.remove("family")

    for message in (waiting, queued):
        fate = await house.fate(message)
        assert fate.state == "ignored"
        assert ("ignored", "the group was removed") in [(s.what, s.why) for s in fate.steps]
    chat = await house.chat()
    assert (chat.woken_at, chat.cursor) == (None, chat.head)


async def test_a_failed_message_of_a_removed_group_is_not_tried_again(house: House) -> None:
    await house.register()
    failed = await house.hear("hello")
    opened = await claim(house)
    await house.store.write(
        lambda tx: house.clerk.fail(tx, opened.turn, "no luck", is_refusal=False)
    )

    await house.groups.remove("family")

    assert await house.state(failed) == "ignored"
    chat = await house.chat()
    assert (chat.woken_at, chat.not_before, chat.attempts) == (None, None, 0)


async def test_a_new_group_on_the_chat_gets_nothing_that_the_old_one_was_told(
    house: House,
) -> None:
    await house.register()
    await house.hear("for the old one")
    await house.groups.remove("family")

    await house.register()
    fresh = await house.hear("for the new one")

    assert [line.id for line in (await claim(house)).batch.lines] == [fresh.id]


async def test_a_turn_of_a_removed_group_is_stopped_and_its_words_no_longer_count(
    house: House,
) -> None:
    await house.register()
    running = await house.hear("hello")
    opened = await claim(house)

    await house.groups.remove("family")

    with pytest.raises(FencedError):
        await answer(house, opened)
    fate = await house.fate(running)
    assert fate.state == "stopped"
    assert (fate.steps[-1].what, fate.steps[-1].why) == ("stopped", "the group was removed")


async def test_the_chat_remembers_the_folder_until_another_group_gets_it(house: House) -> None:
    await house.register()
    await house.groups.remove("family")

    left = await house.store.read(lambda tx: tx.groups.left_by(CHAT))
    await house.register()
    taken = await house.store.read(lambda tx: tx.groups.left_by(CHAT))

    assert (left, taken) == (["family"], [])
