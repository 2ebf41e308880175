"""A forgotten chat is gone: rows, files, the running agent; only how much it was stays."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hallporter.domain.errors import ConflictError, NotFoundError, StoreUnavailableError
from hallporter.domain.happening import ChatForgotten
from hallporter.domain.ids import ChatId
from hallporter.domain.removal import Reason
from hallporter.stores.belongings import Belongings
from hallporter.stores.sqlite import SqliteStore
from hallporter.switchboard.forgetting import Forgetting
from hallporter.switchboard.groups import GroupChange, NewGroup
from hallporter.switchboard.scrubbing import Scrubbing
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
            scrubbing=Scrubbing(store=house.store, clock=house.clock),
            changed=lambda _folder: None,
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
    removal = (await porter.forgetting.forget(CHAT)).removal
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
    assert not list(porter.home.rglob(".forgotten-*"))
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
        forgotten = await porter.forgetting.forget(CHAT)
        assert forgotten.removal.counts["messages"] == 1
        assert await house.store.read(lambda tx: tx.messages.backlog(CHAT, 0)) == []


async def test_a_chat_that_was_never_seen_is_refused(porter: Porter) -> None:
    with pytest.raises(NotFoundError, match="nothing was removed"):
        await porter.forgetting.forget("fake:nowhere")


async def test_forgetting_twice_is_harmless(porter: Porter) -> None:
    await talk(porter.house, CHAT)
    await porter.forgetting.forget(CHAT)
    assert (await porter.forgetting.forget(CHAT)).removal.is_empty


def holds(home: Path, words: str = SECRET) -> list[str]:
    """The database's files that hold the words now."""
    files = home.glob("hallporter.db*")
    return sorted(path.name for path in files if words.encode() in path.read_bytes())


async def test_nothing_of_the_text_is_left_in_the_database_s_files(porter: Porter) -> None:
    await talk(porter.house, CHAT)
    assert holds(porter.home)
    forgotten = await porter.forgetting.forget(CHAT)
    assert forgotten.is_scrubbed
    assert holds(porter.home) == []


@contextlib.contextmanager
def reading(home: Path) -> Iterator[None]:
    """Another program, a backup for example, that holds the state of now."""
    with contextlib.closing(sqlite3.connect(home / "hallporter.db", isolation_level=None)) as held:
        held.execute("BEGIN")
        held.execute("SELECT COUNT(*) FROM messages").fetchone()
        yield


async def test_a_reader_holds_the_scrub_up_which_is_said_and_made_up_for(porter: Porter) -> None:
    house, clock = porter.house, porter.house.clock
    scrubbing = Scrubbing(store=house.store, clock=clock)
    await talk(house, CHAT)
    with reading(porter.home):
        forgetting = asyncio.create_task(porter.forgetting.forget(CHAT))
        while not forgetting.done():
            await asyncio.sleep(0.01)
            clock.advance(timedelta(seconds=1))
        assert not (await forgetting).is_scrubbed
        assert holds(porter.home)
    await scrubbing.scrub_if_owed()
    assert holds(porter.home) == []
    assert await house.store.read(lambda tx: tx.removals.owed_scrub()) is None


async def test_what_could_not_be_scrubbed_is_tried_again_after_an_hour(porter: Porter) -> None:
    house, clock = porter.house, porter.house.clock
    tries: list[datetime] = []

    class Full(SqliteStore):
        async def scrub(self) -> bool:
            tries.append(clock.now())
            raise StoreUnavailableError("the disk is full")

    house.store.__class__ = Full
    scrubbing = Scrubbing(store=house.store, clock=clock)
    await house.store.write(lambda tx: tx.removals.owe_scrub(clock.now()))
    for _ in range(61):
        await scrubbing.scrub_if_owed()
        clock.advance(timedelta(minutes=1))
    assert len(tries) == 2


async def cut_short(porter: Porter, *, purges: bool = False) -> None:
    """A host that was killed when the rows were gone and the files were not."""
    store = porter.house.store
    await store.write(lambda tx: porter.forgetting._begin(tx, CHAT, purges=purges))


async def test_a_killed_forgetting_takes_the_files_at_the_next_start(porter: Porter) -> None:
    await talk(porter.house, CHAT)
    memory = porter.write("groups/family/CLAUDE.md")
    session = porter.write("data/sessions/family/.claude/s-1.jsonl")
    await cut_short(porter)
    await porter.forgetting.resume()
    assert not memory.exists()
    assert not session.exists()
    kept = await porter.house.store.read(lambda tx: tx.removals.last(Reason.FORGET))
    assert kept is not None
    assert (kept.counts["messages"], kept.counts["files"]) == (2, 2)
    assert (await porter.house.groups.get("family")).chat == CHAT


async def test_a_killed_purge_removes_the_group_at_the_next_start(porter: Porter) -> None:
    await talk(porter.house, CHAT)
    memory = porter.write("groups/family/CLAUDE.md")
    await cut_short(porter, purges=True)
    await porter.forgetting.resume()
    assert not memory.exists()
    with pytest.raises(NotFoundError):
        await porter.house.groups.get("family")


async def test_a_forgetting_that_is_done_is_not_resumed(porter: Porter) -> None:
    await porter.forgetting.forget(CHAT)
    memory = porter.write("groups/family/CLAUDE.md")
    await porter.forgetting.resume()
    assert memory.exists()


async def test_what_was_said_after_a_forgetting_got_stuck_is_not_forgotten_at_a_start(
    porter: Porter,
) -> None:
    await talk(porter.house, CHAT)
    await cut_short(porter)
    await talk(porter.house, CHAT, "hello again")
    memory = porter.write("groups/family/CLAUDE.md")
    await porter.forgetting.resume()
    assert await porter.house.replies() == ["I heard: hello again"]
    assert memory.exists()
    removal = (await porter.forgetting.forget(CHAT)).removal
    assert removal.counts["messages"] == 4, "what the first try has removed counts too"
    assert await porter.house.store.read(lambda tx: tx.removals.begun()) == []


async def test_those_who_read_along_hear_that_a_chat_is_forgotten(porter: Porter) -> None:
    async with porter.house.feed.subscribe(CHAT) as events:
        await porter.forgetting.forget(CHAT)
        assert await anext(events) == ChatForgotten(chat=CHAT)


async def test_what_was_said_during_a_purge_goes_too(porter: Porter) -> None:
    house = porter.house
    await talk(house, CHAT)

    class Slow(Belongings):
        async def destroy(self) -> int:
            await house.hear("said meanwhile")
            return await super().destroy()

    porter.forgetting._belongings = Slow(porter.home)
    house.engine.wake = lambda *_: None  # type: ignore[method-assign]
    forgotten = await porter.forgetting.purge("family")
    assert await house.store.read(lambda tx: tx.messages.before(CHAT, 99, 9)) == []
    assert forgotten.removal.counts["messages"] == 3
    assert holds(porter.home, "said meanwhile") == []


async def test_what_a_killed_forgetting_owes_is_done_at_the_next_start(tmp_path: Path) -> None:
    async with open_porter(tmp_path) as porter:
        await talk(porter.house, CHAT)
        left = porter.write("groups/.forgotten-0123/memory.md")
        await cut_short(porter)
        assert holds(tmp_path)
        await porter.forgetting.resume()
        assert holds(tmp_path) == []
        assert not left.parent.exists()


async def test_the_files_of_a_group_that_was_removed_before_go_too(porter: Porter) -> None:
    await talk(porter.house, CHAT)
    memory = porter.write("groups/family/CLAUDE.md")
    session = porter.write("data/sessions/family/.claude/s-1.jsonl")
    await porter.house.groups.remove("family")
    forgotten = await porter.forgetting.forget(CHAT)
    assert forgotten.group is None
    assert forgotten.removal.counts["files"] == 2
    assert not memory.exists()
    assert not session.exists()
    assert await porter.house.store.read(lambda tx: tx.groups.left_by(CHAT)) == []


async def test_a_folder_that_another_group_has_taken_over_stays(porter: Porter) -> None:
    memory = porter.write("groups/family/CLAUDE.md")
    await porter.house.groups.remove("family")
    new = NewGroup(chat="fake:cousins", name="Cousins", folder="family")
    await porter.house.groups.add(new)
    await porter.forgetting.forget(CHAT)
    assert memory.exists()


async def test_a_purge_forgets_the_chat_and_removes_its_group(porter: Porter) -> None:
    house = porter.house
    await talk(house, CHAT)
    await talk(house, NEIGHBOUR, "hello")
    memory = porter.write("groups/family/CLAUDE.md")
    before = await house.chat()
    forgotten = await porter.forgetting.purge("Family")
    assert (forgotten.group, forgotten.removal.counts["messages"]) == (None, 2)
    assert not memory.exists()
    assert holds(porter.home) == []
    with pytest.raises(NotFoundError):
        await house.groups.get("family")
    after = await house.chat()
    assert (after.head, after.cursor, after.session_id) == (before.head, before.head, None)
    assert await house.replies(NEIGHBOUR) == ["I heard: hello"]
    await house.register()
    await talk(house, CHAT, "again")


async def test_requests_of_the_chat_that_were_put_aside_go_too_and_no_neighbours(
    porter: Porter,
) -> None:
    porter.write("data/ipc/errors/family-2-a.json")
    porter.write("data/ipc/errors/family-2-a.json.reason.txt", "not JSON\nfolder: family\n")
    porter.write("data/ipc/errors/family-2-b.json")
    porter.write("data/ipc/errors/family-2-b.json.reason.txt", "not JSON\nfolder: family-2\n")
    claimed = porter.write("data/claims/family/c_1")

    await porter.forgetting.forget(CHAT)

    left = sorted(path.name for path in (porter.home / "data" / "ipc" / "errors").iterdir())
    assert left == ["family-2-b.json", "family-2-b.json.reason.txt"]
    assert not claimed.exists()


async def test_the_main_group_is_not_purged(porter: Porter) -> None:
    await porter.house.groups.change("family", GroupChange(is_main=True))
    await talk(porter.house, CHAT)
    with pytest.raises(ConflictError):
        await porter.forgetting.purge("family")
    assert len(await porter.house.replies()) == 1


async def test_a_link_in_a_groups_folder_leads_the_forgetting_nowhere(porter: Porter) -> None:
    outside = porter.write("outside/precious.txt")
    (porter.home / "groups" / "family").mkdir(parents=True)
    (porter.home / "groups" / "family" / "link").symlink_to(outside.parent)
    await porter.forgetting.forget(CHAT)
    assert outside.read_text() == "kept"
