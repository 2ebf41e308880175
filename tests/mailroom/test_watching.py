"""A request acts the moment its file is there, and nobody looks while none comes."""

from __future__ import annotations

import errno
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from inotify_simple import INotify

from hallporter.mailroom.pace import Pace, Rate
from tests.fakes.clock import FakeClock
from tests.mailroom.post import FAMILY, MAIN, WORK, chat_of, open_post, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

HELLO = {"type": "message", "text": "hello"}


class SmallKernel(INotify):  # type: ignore[misc]  # it ships no types
    """Allows so many watches and no more."""

    def __init__(self, most: int) -> None:
        super().__init__(nonblocking=True)
        self._left = most

    def add_watch(self, path: object, mask: int) -> int:
        if self._left == 0:
            raise OSError(errno.ENOSPC, "no space left on device")
        self._left -= 1
        return int(super().add_watch(path, mask))

    def rm_watch(self, wd: int) -> None:
        self._left += 1
        super().rm_watch(wd)


def no_kernel() -> INotify:
    raise OSError(errno.EMFILE, "too many open files")


@pytest.mark.requirement("ipc.watch.every-second")
@pytest.mark.requirement("ipc.layout.messages")
@pytest.mark.requirement("ipc.layout.tasks")
async def test_a_request_acts_when_it_is_renamed_in(tmp_path: Path) -> None:
    # The clock stands still: whoever waited for it would wait for ever.
    async with open_post(tmp_path) as post:
        await post.quiet()
        assert (await post.answer(FAMILY, HELLO))["ok"]
        told = await post.answer(FAMILY, {"type": "refresh_groups"})
        assert not told["ok"]


async def test_a_request_acts_when_whoever_wrote_it_in_place_is_done(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        await post.quiet()
        with (post.box(FAMILY, "messages") / "a.json").open("w") as file:
            file.write(json.dumps(HELLO))
        await until(lambda: post.result(FAMILY, "a.json"))
        assert await post.said(chat_of(FAMILY)) == ["hello"]


@pytest.mark.requirement("ipc.layout.folder-per-group")
@pytest.mark.requirement("ipc.layout.input")
async def test_a_group_that_is_registered_while_the_house_runs_is_heard_at_once(
    tmp_path: Path,
) -> None:
    async with open_post(tmp_path) as post:
        await post.quiet()
        await post.register("club")
        for box in ("messages", "tasks", "input", "results"):
            await until(post.box("club", box).is_dir)
        assert (await post.answer("club", HELLO))["ok"]
        assert await post.said(chat_of("club")) == ["hello"]


async def test_what_a_removed_group_asks_for_is_put_aside(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        post.ask(FAMILY, HELLO, name=".late.json")
        await post.groups.remove(FAMILY)
        hidden = post.box(FAMILY, "messages") / ".late.json"
        hidden.rename(hidden.with_name("late.json"))
    # By the last look at a folder that nobody watches any more, or by the first of the next host.
    async with open_post(tmp_path) as post:
        await until(post.put_aside)
        assert post.put_aside() == {"family-late.json": "the folder 'family' belongs to no group"}
        assert await post.said(chat_of(FAMILY)) == []


@pytest.mark.parametrize("ask_kernel", [no_kernel, lambda: SmallKernel(2)])
async def test_folders_that_cannot_be_watched_are_swept_each_minute(
    tmp_path: Path, ask_kernel: type[SmallKernel]
) -> None:
    async with open_post(tmp_path, ask_kernel=ask_kernel) as post:
        await until(lambda: len(post.room.unwatched) >= 2)
        await post.quiet()
        unwatched = post.room.unwatched[0]
        name = post.ask(unwatched, HELLO)
        await post.soon(lambda: post.result(unwatched, name))


async def test_whose_agent_starts_gets_the_watch_of_one_that_rests(tmp_path: Path) -> None:
    async with open_post(tmp_path, ask_kernel=lambda: SmallKernel(4)) as post:
        await until(lambda: len(post.room.unwatched) == 1)
        for folder in (MAIN, FAMILY, WORK, FAMILY):
            await post.room.announce(await post.groups.get(folder))
            assert folder not in post.room.unwatched
            assert len(post.room.unwatched) == 1
            assert (await post.answer(folder, HELLO))["ok"]


async def test_too_many_events_at_once_lose_nothing(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        await post.quiet()
        box = post.box(FAMILY, "messages")
        names = []
        # No step of the event loop in between: the kernel's queue takes 16,384 events.
        for number in range(20_000):
            (box / f".noise-{number % 2}.tmp").write_bytes(b"")
            if number % 2000 == 0:
                names.append(post.ask(FAMILY, {"type": "message", "text": str(number)}))
        assert len(names) == 10
        await until(lambda: all(post.result(FAMILY, name) for name in names))
        assert len(await post.said(chat_of(FAMILY))) == len(names)


# --- pace ---------------------------------------------------------------------------------------


async def test_a_flood_waits_and_none_of_it_is_dropped(tmp_path: Path) -> None:
    async with open_post(tmp_path, rate=Rate()) as post:
        await post.quiet()
        names = [
            post.ask(FAMILY, {"type": "message", "text": f"{number}"}) for number in range(400)
        ]
        said: list[str] = []
        while len(said) < 150:
            said = await post.said(chat_of(FAMILY))
        # The clock stands still, so the flood stops; another's request does not.
        assert (await post.answer(WORK, HELLO))["ok"]
        assert len(await post.said(chat_of(FAMILY))) <= 200
        await post.soon(lambda: not post.lying() and not post.claimed())
        assert await post.said(chat_of(FAMILY)) == [f"{number}" for number in range(400)]
        assert all(post.result(FAMILY, name) for name in names)


async def test_an_answer_does_not_wait_for_a_flood(tmp_path: Path) -> None:
    async with open_post(tmp_path, rate=Rate(burst=5)) as post:
        await post.quiet()
        for number in range(20):
            post.ask(FAMILY, {"type": "message", "text": f"{number}"})
        await post.room.drain(await post.groups.get(FAMILY))
        assert len(await post.said(chat_of(FAMILY))) <= 5
        assert post.lying()


def test_the_usual_pace_is_the_one_that_is_promised() -> None:
    assert Rate() == Rate(per_second=50, burst=200)


def test_the_pace_is_a_burst_and_then_a_rate() -> None:
    clock = FakeClock()
    pace = Pace(Rate(per_second=50, burst=200), clock)
    assert pace.left() == 200
    pace.take(200)
    assert (pace.left(), pace.wait()) == (0, timedelta(milliseconds=200))
    clock.advance(timedelta(seconds=1))
    assert pace.left() == 50
    clock.advance(timedelta(hours=1))
    assert pace.left() == 200
    clock.advance(timedelta(hours=-2))
    assert pace.left() == 200


# --- before an answer ---------------------------------------------------------------------------


@pytest.mark.rule("R12")
async def test_what_lies_there_is_carried_out_before_a_drain_returns(tmp_path: Path) -> None:
    async with open_post(tmp_path, ask_kernel=no_kernel) as post:
        await post.quiet()
        family = await post.groups.get(FAMILY)
        await post.room.drain(family)
        for number in range(120):
            post.ask(FAMILY, {"type": "message", "text": f"{number}"})
        await post.room.drain(family)
        assert await post.said(chat_of(FAMILY)) == [f"{number}" for number in range(120)]


async def test_a_drain_of_a_room_that_is_not_open_returns(tmp_path: Path) -> None:
    async with open_post(tmp_path, is_serving=False) as post:
        await post.room.drain(await post.groups.get(FAMILY))
