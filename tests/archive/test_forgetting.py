"""A forgotten chat is gone: rows, files, the running agent; only how much it was stays."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hallporter.domain.errors import NotFoundError
from hallporter.domain.ids import ChatId
from hallporter.domain.removal import Reason
from hallporter.stores.belongings import Belongings
from hallporter.switchboard.forgetting import Forgetting
from tests.switchboard.house import CHAT, House, open_house

NEIGHBOUR = ChatId("fake:friends")
SECRET = "the-combination-is-1234"


@dataclass
class Porter:
    house: House
    home: Path
    forgetting: Forgetting
    evicted: list[tuple[ChatId, bool]]

    def write(self, name: str, text: str = "kept") -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@contextlib.asynccontextmanager
async def open_porter(path: Path) -> AsyncIterator[Porter]:
    evicted: list[tuple[ChatId, bool]] = []

    async def evict(chat: ChatId) -> None:
        evicted.append((chat, (path / "groups" / "family").exists()))

    async with asyncio.timeout(20), open_house(path) as house:
        forgetting = Forgetting(
            store=house.store,
            engine=house.engine,
            feed=house.feed,
            clock=house.clock,
            evict=evict,
            belongings=Belongings(path),
        )
        await house.register()
        await house.register(NEIGHBOUR)
        yield Porter(house=house, home=path, forgetting=forgetting, evicted=evicted)


@pytest.fixture
async def porter(tmp_path: Path) -> AsyncIterator[Porter]:
    async with open_porter(tmp_path) as opened:
        yield opened


async def talk(house: House, chat: ChatId, words: str = SECRET) -> None:
    message = await house.hear(words, chat)
    seat = await house.agent.seated(len(house.agent.seats) + 1)
    seat.say(f"I heard: {words}", session="s-1")
    await house.settled(message, "answered")
    await house.idle()


async def test_texts_turns_session_and_files_are_gone_and_counted(porter: Porter) -> None:
    house = porter.house
    await talk(house, CHAT)
    memory = porter.write("groups/family/CLAUDE.md")
    session = porter.write("data/sessions/family/.claude/s-1.jsonl")
    waiting = porter.write("data/ipc/family/input/1.json")
    sent = porter.write("data/media/family/f_1")
    removal = await porter.forgetting.forget(CHAT)
    assert removal.counts == {
        "messages": 2,
        "turns": 1,
        "sent_replies": 1,
        "tasks": 0,
        "sessions": 1,
        "files": 4,
    }
    assert await house.replies() == []
    assert not any(path.exists() for path in (memory, session, waiting, sent))
    assert not (porter.home / "data" / "forgotten").exists()
    chat = await house.chat()
    assert (chat.session_id, chat.cursor) == (None, chat.head)
    kept = await house.store.read(lambda tx: tx.removals.last(Reason.FORGET))
    assert kept == removal


async def test_the_neighbours_keep_everything(porter: Porter) -> None:
    house = porter.house
    await talk(house, CHAT)
    await talk(house, NEIGHBOUR, "hello")
    memory = porter.write("groups/friends/CLAUDE.md")
    shared = porter.write("groups/global/CLAUDE.md")
    sent = porter.write("data/media/friends/f_1")
    await porter.forgetting.forget(CHAT)
    assert await house.replies(NEIGHBOUR) == ["I heard: hello"]
    assert memory.exists()
    assert shared.exists()
    assert sent.exists()


async def test_the_chat_goes_on_with_a_fresh_session(porter: Porter) -> None:
    house = porter.house
    await talk(house, CHAT)
    await porter.forgetting.forget(CHAT)
    await talk(house, CHAT, "who are you?")
    brief = house.agent.seats[-1].brief
    assert brief.session_id is None
    assert [line.text for line in brief.batch.lines] == ["who are you?"]
    assert await house.replies() == ["I heard: who are you?"]


async def test_a_running_turn_is_stopped_first_and_its_words_no_longer_count(
    porter: Porter,
) -> None:
    house = porter.house
    await house.hear(SECRET)
    seat = await house.agent.seated()
    await porter.forgetting.forget(CHAT)
    await house.agent.over(seat)
    assert seat.is_stopped
    assert await house.replies() == []
    assert porter.evicted == [(CHAT, False)], "the folders go before the agent, not after it"
    await talk(house, CHAT, "anyone?")


async def test_what_waits_is_forgotten_too(tmp_path: Path) -> None:
    async with open_porter(tmp_path) as porter:
        house = porter.house
        house.engine.wake = lambda *_: None  # type: ignore[method-assign]
        await house.hear(SECRET)
        removal = await porter.forgetting.forget(CHAT)
        assert removal.counts["messages"] == 1
        assert await house.store.read(lambda tx: tx.messages.backlog(CHAT, 0)) == []


async def test_a_chat_that_was_never_seen_is_refused(porter: Porter) -> None:
    with pytest.raises(NotFoundError, match="nothing was removed"):
        await porter.forgetting.forget("fake:nowhere")


async def test_forgetting_twice_is_harmless(porter: Porter) -> None:
    await talk(porter.house, CHAT)
    await porter.forgetting.forget(CHAT)
    assert (await porter.forgetting.forget(CHAT)).is_empty


async def test_nothing_of_the_text_is_left_in_the_database_file(tmp_path: Path) -> None:
    async with open_porter(tmp_path) as porter:
        await talk(porter.house, CHAT)
    path = tmp_path / "hallporter.db"
    assert SECRET.encode() in path.read_bytes()
    async with open_porter_again(tmp_path) as forgetting:
        await forgetting.forget(CHAT)
    assert SECRET.encode() not in path.read_bytes()


@contextlib.asynccontextmanager
async def open_porter_again(path: Path) -> AsyncIterator[Forgetting]:
    async def evict(_chat: ChatId) -> None:
        """Nobody is here."""

    async with asyncio.timeout(20), open_house(path) as house:
        yield Forgetting(
            store=house.store,
            engine=house.engine,
            feed=house.feed,
            clock=house.clock,
            evict=evict,
            belongings=Belongings(path),
        )


async def test_a_link_in_a_groups_folder_leads_the_forgetting_nowhere(porter: Porter) -> None:
    outside = porter.write("outside/precious.txt")
    (porter.home / "groups" / "family").mkdir(parents=True)
    (porter.home / "groups" / "family" / "link").symlink_to(outside.parent)
    await porter.forgetting.forget(CHAT)
    assert outside.read_text() == "kept"
