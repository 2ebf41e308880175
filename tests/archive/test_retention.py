"""What is too old goes at night, once, and it is said how much."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.books import Tx
from hallporter.domain.command import Box, Carried
from hallporter.domain.enclosure import Enclosure
from hallporter.domain.errors import StoreUnavailableError
from hallporter.domain.happening import TurnChanged
from hallporter.domain.ids import ChatId, CommandId, EnclosureId, Folder, MessageId, TurnId
from hallporter.domain.message import Kind, Message
from hallporter.domain.removal import Reason, Removal, Retention, told
from hallporter.removal import remove
from hallporter.stores.belongings import Belongings, drop_old
from hallporter.stores.media import Media
from hallporter.switchboard.enclosures import Enclosures
from hallporter.switchboard.notices import Notices
from hallporter.switchboard.outbound import Outbound
from hallporter.switchboard.retention import Sweep
from hallporter.switchboard.rounds import Rounds
from hallporter.switchboard.scheduler import Scheduler
from hallporter.switchboard.scrubbing import Scrubbing
from hallporter.switchboard.tasks import NewTask, Tasks
from tests.fakes.clock import FakeClock
from tests.fakes.ids import counting_id
from tests.switchboard.house import CHAT, House, open_house
from tests.test_removal import dig

NIGHTLY = Retention(
    messages=timedelta(days=30), logs=timedelta(days=7), hour=3, zone=ZoneInfo("UTC")
)
DAY = timedelta(days=1)


@dataclass
class Keeper:
    house: House
    home: Path
    sweep: Sweep
    notices: Notices


@pytest.fixture
async def keeper(tmp_path: Path) -> AsyncIterator[Keeper]:
    async with asyncio.timeout(20), open_house(tmp_path) as house:
        notices = Notices(
            store=house.store,
            outbound=Outbound(
                channel_of=lambda _chat: house.channel,
                wake_delivery=house.delivery.wake,
                feed=house.feed,
                clock=house.clock,
                new_id=counting_id,
                speaker="Andy",
            ),
            channel_of=lambda _chat: house.channel,
            clock=house.clock,
            free_disk=lambda: 1,
            min_free_disk=None,
        )
        sweep = Sweep(
            store=house.store,
            clock=house.clock,
            retention=NIGHTLY,
            logs=Belongings(tmp_path),
            enclosures=Enclosures(store=house.store, shelf=Media(tmp_path), new_id=counting_id),
            notices=notices,
            scrubbing=Scrubbing(store=house.store, clock=house.clock),
        )
        await house.register(trigger="@Andy")
        yield Keeper(house=house, home=tmp_path, sweep=sweep, notices=notices)


async def talk(house: House, words: str) -> None:
    message = await house.hear(f"@Andy {words}")
    seat = await house.agent.seated(len(house.agent.seats) + 1)
    seat.say(f"yes, {words}")
    await house.settled(message, "answered")
    await house.idle()
    await house.until(lambda: is_sent(house))


async def is_sent(house: House) -> bool:
    return not await house.store.read(lambda tx: tx.outbox.counts())


async def texts(house: House) -> list[str]:
    page = await house.story.page(CHAT, after=None, limit=200)
    return [message.text for message in page.messages]


async def test_old_messages_go_with_their_turns_and_young_ones_stay(keeper: Keeper) -> None:
    house = keeper.house
    await talk(house, "old")
    house.clock.advance(31 * DAY)
    await talk(house, "young")
    removal = await keeper.sweep.run_if_due()
    assert removal is not None
    kept = {"ticks": 0, "commands": 0, "logs": 0, "files": 0}
    assert removal.counts == {"messages": 2, "turns": 1, **kept}
    assert await texts(house) == ["@Andy young", "yes, young"]
    [notice] = await keeper.notices.open()
    assert notice.text == "The nightly sweep removed 2 messages, 1 turn."


async def test_the_record_of_old_commands_goes(keeper: Keeper) -> None:
    house = keeper.house

    def record(tx: Tx, number: int, at: datetime) -> None:
        tx.commands.add(
            Carried(
                id=CommandId(f"c_{number}"),
                folder=Folder("family"),
                box=Box.MESSAGES,
                name="a.json",
                at=at,
                kind="message",
                is_ok=True,
                why="",
                result={},
            )
        )

    for number in range(3):
        at = house.clock.now()
        await house.store.write(partial(record, number=number, at=at))
        house.clock.advance(20 * DAY)
    removal = await keeper.sweep.run_if_due()
    assert removal is not None
    assert removal.counts["commands"] == 2
    left = await house.store.read(lambda tx: tx.commands.all(None, 10))
    assert [one.id for one in left] == ["c_2"]


async def test_old_ticks_go_and_their_task_stays(keeper: Keeper) -> None:
    house = keeper.house
    engine, clock, store = house.engine, house.clock, house.store
    scheduler = Scheduler(store=store, engine=engine, clock=clock, changed=lambda _folder: None)
    tasks = Tasks(
        store=store,
        engine=engine,
        clock=clock,
        new_id=counting_id,
        timezone="UTC",
        poke=scheduler.poke,
        changed=lambda _folder: None,
    )
    new = NewTask(
        folder="family",
        prompt="Say the day.",
        schedule_type="cron",
        schedule_value="@daily",
        misfire="skip",
        created_by="family",
    )
    task = await tasks.add(new)
    clock.advance(90 * DAY)
    await scheduler.look()
    removal = await keeper.sweep.run_if_due()
    assert removal is not None
    assert removal.counts["ticks"] == 60
    assert len(await tasks.ticks(task.id, 1000)) == 30
    assert (await tasks.get(task.id)).next_at is not None


async def test_chatter_that_nobody_asked_to_answer_goes_too(keeper: Keeper) -> None:
    await keeper.house.hear("just talking")
    keeper.house.clock.advance(31 * DAY)
    await keeper.sweep.run_if_due()
    assert await texts(keeper.house) == []


async def test_what_still_waits_for_an_answer_or_for_its_network_stays(keeper: Keeper) -> None:
    house = keeper.house
    house.channel.is_down = True
    message = await house.hear("@Andy one")
    (await house.agent.seated()).say("not sent yet")
    await house.settled(message, "answered")
    await house.idle()
    waiting = await house.hear("@Andy two")
    await house.agent.seated(2)
    removal = Retention(messages=timedelta(0), logs=None, hour=3, zone=UTC)
    await replace(keeper.sweep, retention=removal).run_if_due()
    assert await house.state(waiting) == "running"
    assert "not sent yet" in await texts(house)


async def test_without_limits_everything_stays(keeper: Keeper) -> None:
    await talk(keeper.house, "old")
    keeper.house.clock.advance(1000 * DAY)
    for_ever = Retention(messages=None, logs=None, hour=3, zone=UTC)
    removal = await replace(keeper.sweep, retention=for_ever).run_if_due()
    assert removal is not None
    assert removal.is_empty
    assert len(await texts(keeper.house)) == 2
    assert await keeper.notices.open() == []


async def test_the_sweep_runs_once_a_day_also_across_a_restart(keeper: Keeper) -> None:
    clock = keeper.house.clock  # it is ten in the morning
    assert await keeper.sweep.run_if_due() is not None
    restarted = replace(keeper.sweep)
    assert await restarted.run_if_due() is None
    clock.advance(timedelta(hours=16, minutes=59))
    assert await restarted.run_if_due() is None
    clock.advance(timedelta(minutes=1))
    assert await restarted.run_if_due() is not None
    assert await restarted.run_if_due() is None


async def test_old_logs_go_and_links_lead_nowhere(keeper: Keeper) -> None:
    old = (keeper.house.clock.now() - 8 * DAY).timestamp()
    home = keeper.home

    def put(name: str, *, is_old: bool) -> Path:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words")
        now = keeper.house.clock.now().timestamp()
        os.utime(path, (old, old) if is_old else (now, now))
        return path

    gone = [put("groups/family/logs/a.log", is_old=True), put("logs/hallporter.log.3", is_old=True)]
    stay = [
        put("groups/family/logs/b.log", is_old=False),
        put("logs/hallporter.log", is_old=True),
        put("groups/family/notes.md", is_old=True),
        put("outside/precious.log", is_old=True),
    ]
    (home / "groups" / "family" / "logs" / "link").symlink_to(home / "outside")
    (home / "groups" / "friends").mkdir()
    (home / "groups" / "friends" / "logs").symlink_to(home / "outside")
    removal = await keeper.sweep.run_if_due()
    assert removal is not None
    assert removal.counts["logs"] == 2
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in stay)


def test_a_log_that_is_gone_before_its_turn_comes_holds_up_nothing(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.log").touch()
    dropping = drop_old(tmp_path, before=2e9)
    first = next(dropping)
    rotated = next(path for path in tmp_path.iterdir() if path.name != first)
    rotated.unlink()
    assert {first, rotated.name, *dropping} == {"0.log", "1.log", "2.log"}
    assert list(tmp_path.iterdir()) == []


def test_no_depth_of_folders_holds_up_the_sweep_of_logs(tmp_path: Path) -> None:
    dig(tmp_path / "deep", 3000)
    (tmp_path / "a.log").touch()
    assert list(drop_old(tmp_path, before=2e9)) == ["a.log"]
    remove(tmp_path / "deep")  # pytest could not


async def test_nothing_of_what_was_swept_is_left_in_the_database_s_files(keeper: Keeper) -> None:
    await talk(keeper.house, "the-combination-is-1234")
    files = list(keeper.home.glob("hallporter.db*"))
    assert any(b"the-combination" in path.read_bytes() for path in files)
    keeper.house.clock.advance(31 * DAY)
    await keeper.sweep.run_if_due()
    assert not any(b"the-combination" in path.read_bytes() for path in files)


async def test_what_failed_and_is_tried_again_by_itself_stays(keeper: Keeper) -> None:
    house = keeper.house
    message = await house.hear("@Andy do it")
    (await house.agent.seated()).fail("no luck")
    await house.settled(message, "failed")
    await house.idle()
    at_once = Retention(messages=timedelta(0), logs=None, hour=3, zone=UTC)
    await replace(keeper.sweep, retention=at_once).run_if_due()
    assert await texts(house) == ["@Andy do it"]


async def test_the_rounds_look_every_minute_and_at_once_when_a_turn_fails(keeper: Keeper) -> None:
    house = keeper.house
    looks: asyncio.Queue[int] = asyncio.Queue()

    async def look() -> None:
        looks.put_nowait(1)
        raise StoreUnavailableError("the disk is full")  # which ends nothing

    async def sweep() -> None:
        """Nothing is old."""

    rounds = Rounds(look=look, sweep=sweep, feed=house.feed, clock=house.clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(rounds.serve())
        await looks.get()
        await asyncio.sleep(0)
        house.feed.publish(TurnChanged(chat=CHAT, turn=TurnId("t"), state="failed"))
        await looks.get()
        while looks.empty():  # until the rounds have come to rest, the clock moves nobody
            await asyncio.sleep(0)
            house.clock.advance(timedelta(minutes=1))
        serving.cancel()


@given(
    now=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    hour=st.integers(0, 23),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"]),
)
def test_after_a_sweep_none_is_due_for_most_of_a_day_and_then_one_is(
    now: datetime, hour: int, zone: str
) -> None:
    retention = Retention(messages=None, logs=None, hour=hour, zone=ZoneInfo(zone))
    assert retention.is_due(now, None)
    assert not retention.is_due(now, now)
    assert retention.is_due(now + timedelta(hours=25), now)


def test_counts_are_told_for_people() -> None:
    assert told({"messages": 1, "turns": 2, "files": 0}) == "1 message, 2 turns"
    assert told({"messages": 0}) == "nothing"
    assert told({"sent_replies": 1, "sessions": 1, "logs": 1}) == "1 sent reply, 1 session, 1 log"
    assert told({"sent_replies": 2}) == "2 sent replies"
    empty = Removal(at=FakeClock().now(), reason=Reason.FORGET, chat=ChatId("web:x"))
    assert empty.is_empty


def say_with_file(house: House, id: str) -> Callable[[Tx], None]:
    """An agent's message, and its file is on the shelf."""

    def fn(tx: Tx) -> None:
        tx.messages.add(
            Message(
                id=MessageId(f"m_{id}"),
                chat=CHAT,
                seq=tx.chats.raise_head(CHAT),
                ext_id=id,
                sender="Andy",
                sender_name="Andy",
                text=id,
                at=house.clock.now(),
                kind=Kind.REPLY,
                files=(
                    Enclosure(
                        id=EnclosureId(id),
                        folder=Folder("family"),
                        name="a.txt",
                        size=1,
                        type="text/plain",
                    ),
                ),
            )
        )

    return fn


async def test_files_go_when_they_are_old_or_their_message_is_gone(keeper: Keeper) -> None:
    house = keeper.house
    place = keeper.home / "data" / "media" / "family"
    place.mkdir(parents=True)

    async def put(id: str, *, is_said: bool = True) -> None:
        if is_said:
            await house.store.write(say_with_file(house, id))
        (place / id).write_text("words")
        os.utime(place / id, (house.clock.now().timestamp(),) * 2)

    await put("f_ancient")
    house.clock.advance(20 * DAY)
    await put("f_old")
    await put("f_lost", is_said=False)
    house.clock.advance(11 * DAY)
    await put("f_young")
    await put("f_in_hand", is_said=False)
    removal = await keeper.sweep.run_if_due()
    assert removal is not None
    assert (removal.counts["messages"], removal.counts["files"]) == (1, 2)
    assert sorted(path.name for path in place.iterdir()) == ["f_in_hand", "f_old", "f_young"]

    house.clock.advance(DAY)
    of_files = Retention(
        messages=None, logs=None, media=timedelta(days=10), hour=3, zone=ZoneInfo("UTC")
    )
    removal = await replace(keeper.sweep, retention=of_files).run_if_due()
    assert removal is not None
    assert removal.counts["files"] == 2
    assert [path.name for path in place.iterdir()] == ["f_young"]
    assert await texts(house) == ["f_old", "f_young"], "the words stay"
