"""What an agent may leave in its boxes instead of requests: nothing is followed, nothing blocks."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING

import pytest

from hallporter.mailroom.quarantine import MOST_EACH
from tests.mailroom.post import FAMILY, WORK, chat_of, names_in, open_post, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

NAME = "0-first.json"
SECRET = '{"type": "message", "text": "a secret of another"}'
HELLO = {"type": "message", "text": "hello"}


def _link_to_a_file(place: Path, elsewhere: Path) -> None:
    place.symlink_to(elsewhere / "secret.json")


def _link_to_nothing(place: Path, elsewhere: Path) -> None:
    place.symlink_to(elsewhere / "nothing")


def _link_to_itself(place: Path, elsewhere: Path) -> None:
    place.symlink_to(NAME)


def _link_to_a_folder(place: Path, elsewhere: Path) -> None:
    place.symlink_to(elsewhere)


def _folder(place: Path, elsewhere: Path) -> None:
    (place / "deep" / "deeper").mkdir(parents=True)
    (place / "deep" / "file.json").write_text(SECRET)
    (place / "deep").chmod(0)
    place.chmod(0)


def _pipe(place: Path, elsewhere: Path) -> None:
    os.mkfifo(place)


def _socket(place: Path, elsewhere: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    here = os.open(".", os.O_RDONLY)
    os.chdir(place.parent)  # the path of a socket may not be long
    try:
        listening.bind(place.name)
    finally:
        os.fchdir(here)
        os.close(here)
        listening.close()


def _hard_link(place: Path, elsewhere: Path) -> None:
    os.link(elsewhere / "secret.json", place)


def _large(place: Path, elsewhere: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1024 * 1024 + 1)


def _huge(place: Path, elsewhere: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


EVIL = [
    (_link_to_a_file, "it is a link"),
    (_link_to_nothing, "it is a link"),
    (_link_to_itself, "it is a link"),
    (_link_to_a_folder, "it is a link"),
    (_folder, "it is a folder"),
    (_pipe, "it is a pipe"),
    (_socket, "it is a socket"),
    (_hard_link, "hard links"),
    (_large, "it is larger than 1,048,576 bytes"),
    (_huge, "it is larger than 1,048,576 bytes"),
]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """What no agent may reach."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "secret.json").write_text(SECRET)
    return place


@pytest.mark.parametrize("box", ["messages", "tasks"])
@pytest.mark.parametrize(("make", "reason"), EVIL)
async def test_it_is_put_aside_and_the_next_one_acts(
    tmp_path: Path,
    elsewhere: Path,
    make: Callable[[Path, Path], None],
    reason: str,
    box: str,
) -> None:
    async with open_post(tmp_path) as post:
        aside = post.box(FAMILY, box) / ".evil"
        make(aside, elsewhere)
        aside.rename(aside.with_name(NAME))
        # Whatever it was, it may make no noise of its own; the next one does.
        told = await post.answer(FAMILY, HELLO)
        await post.answer(FAMILY, {"type": "cancel_task", "task_id": "none"})
        await post.quiet()

        assert told["ok"]
        assert await post.said(chat_of(FAMILY)) == ["hello"]
        ((name, why),) = post.put_aside().items()
        assert name == f"{FAMILY}-{NAME}"
        assert reason in why
        assert post.result(FAMILY, NAME) == {"ok": False, "error": why}
        assert "secret" not in (post.data / "ipc" / "errors" / name).read_text()
        assert (post.data / "ipc" / "errors" / name).stat().st_size <= 64 * 1024
        assert [path.name for path in elsewhere.iterdir()] == ["secret.json"]
        assert (elsewhere / "secret.json").read_text() == SECRET


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (b"a" * 250 + b".json", "family-" + "a" * 64 + ".json"),
        ("ä".encode() * 124 + b".json", "family-" + "ä" * 32 + ".json"),
        (b"\xff\xfe.json", "family-__.json.json"),
        (b"line\nfeed.json", "family-line_feed.json.json"),
        (b"\x1b[2J.json", "family-_[2J.json.json"),
    ],
)
async def test_a_name_that_cannot_be_written_down_is_refused(
    tmp_path: Path, name: bytes, kept: str
) -> None:
    async with open_post(tmp_path) as post:
        place = os.fsencode(post.box(FAMILY, "messages"))
        with open(place + b"/" + name, "wb") as file:  # noqa: PTH123  the name is no text
            file.write(b'{"type": "message", "text": "odd"}')
        await post.quiet()
        assert await post.said(chat_of(FAMILY)) == []
        ((there, why),) = post.put_aside().items()
        assert names_in(post.box(FAMILY, "results")) == []
        assert there == kept
        assert "its name cannot be used" in why


@pytest.mark.requirement("ipc.file.json")
async def test_what_is_not_named_as_a_request_is_left_alone(tmp_path: Path) -> None:
    names = ("half.json.tmp", ".hidden.json", "notes.txt", "noending", "upper.JSON")
    async with open_post(tmp_path) as post:
        for name in names:
            (post.box(FAMILY, "messages") / name).write_text(SECRET)
        await post.answer(FAMILY, HELLO)
        assert await post.said(chat_of(FAMILY)) == ["hello"]
        assert sorted(names_in(post.box(FAMILY, "messages"))) == sorted(names)
        assert post.put_aside() == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xff", b"null", b'{"type": 7}'])
async def test_what_cannot_be_understood_is_put_aside_and_its_agent_told(
    tmp_path: Path, content: bytes
) -> None:
    async with open_post(tmp_path) as post:
        for box in ("messages", "tasks"):
            told = await post.answer(FAMILY, content, box=box)
            assert not told["ok"]
            await post.quiet()
            reasons = post.put_aside()
            assert told["error"] in reasons.values()
        kept = sorted((post.data / "ipc" / "errors").glob("*.json"))
        assert [file.read_bytes() for file in kept] == [content, content]


async def test_two_of_one_name_are_both_kept(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        for _ in range(3):
            post.ask(FAMILY, b"rubbish", box="tasks", name="x.json")
            await post.quiet()
        names = list(post.put_aside())
        assert len(names) == 3
        assert names[-1] == "family-x.json"


def _gone(box: Path, elsewhere: Path) -> None:
    box.rmdir()


def _a_file(box: Path, elsewhere: Path) -> None:
    box.rmdir()
    with contextlib.suppress(IsADirectoryError):  # it was put right already
        box.write_text("no folder")


def _a_link(box: Path, elsewhere: Path) -> None:
    box.rmdir()
    with contextlib.suppress(FileExistsError):  # it was put right already
        box.symlink_to(elsewhere)


def _moved(box: Path, elsewhere: Path) -> None:
    box.rename(box.with_name(f"old-{box.name}"))


def _closed(box: Path, elsewhere: Path) -> None:
    box.chmod(0)


@pytest.mark.parametrize("box", ["messages", "tasks"])
@pytest.mark.parametrize("spoil", [_gone, _a_file, _a_link, _moved, _closed])
async def test_a_box_that_an_agent_spoils_is_put_right_and_watched_again(
    tmp_path: Path, elsewhere: Path, spoil: Callable[[Path, Path], None], box: str
) -> None:
    async with open_post(tmp_path) as post:
        place = post.box(FAMILY, box)
        spoil(place, elsewhere)
        if spoil is _closed:
            # To its own agent too; the next look opens it.
            await post.room.drain(await post.groups.get(FAMILY))
        await until(lambda: place.is_dir() and not place.is_symlink())

        request = HELLO if box == "messages" else {"type": "pause_task", "task_id": "none"}
        await post.answer(FAMILY, request)

        assert (elsewhere / "secret.json").read_text() == SECRET
        assert post.room.unwatched == []


@pytest.mark.parametrize("box", ["messages", "tasks", "results", "input"])
@pytest.mark.parametrize("spoil", [_gone, _a_file, _a_link, _moved, _closed])
async def test_a_box_that_was_spoilt_while_no_host_ran_is_put_right(
    tmp_path: Path, elsewhere: Path, spoil: Callable[[Path, Path], None], box: str
) -> None:
    async with open_post(tmp_path) as post:
        await post.quiet()
        place = post.box(FAMILY, box)
    spoil(place, elsewhere)
    async with open_post(tmp_path) as post:
        assert (await post.answer(FAMILY, HELLO))["ok"]
        assert place.is_dir()
        assert not place.is_symlink()
        assert [path.name for path in elsewhere.iterdir()] == ["secret.json"]


async def test_a_spoilt_results_folder_costs_the_agent_its_results_alone(
    tmp_path: Path, elsewhere: Path
) -> None:
    async with open_post(tmp_path) as post:
        results = post.box(FAMILY, "results")
        results.rmdir()
        results.symlink_to(elsewhere)
        post.ask(FAMILY, HELLO)
        await post.quiet()
        assert await post.said(chat_of(FAMILY)) == ["hello"]
        assert [path.name for path in elsewhere.iterdir()] == ["secret.json"]
        assert not results.is_symlink()
        assert len(list(results.iterdir())) == 1


async def test_a_folder_in_the_place_of_a_result_does_no_harm(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        (post.box(FAMILY, "results") / "x.json" / "inner").mkdir(parents=True)
        post.ask(FAMILY, HELLO, name="x.json")
        await post.quiet()
        assert await post.said(chat_of(FAMILY)) == ["hello"]
        assert (await post.answer(WORK, HELLO))["ok"]


async def test_what_is_put_aside_is_bounded(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        for number in range(MOST_EACH + 20):
            post.ask(FAMILY, b"rubbish", box="tasks", name=f"{number:05d}.json")
        await post.quiet()
        kept = list(post.put_aside())
        assert len(kept) == MOST_EACH
        assert (kept[0], kept[-1]) == ("family-00020.json", f"family-{MOST_EACH + 19:05d}.json")


async def test_results_that_nobody_reads_are_bounded(tmp_path: Path) -> None:
    async with open_post(tmp_path) as post:
        for number in range(1100):
            post.ask(FAMILY, {"type": "message", "text": ""}, name=f"{number:05d}.json")
        await post.quiet()
        await until(lambda: len(names_in(post.box(FAMILY, "results"))) <= 1000)
        old = post.box(FAMILY, "results") / "01099.json"
        os.utime(old, (0, 0))
        await post.answer(FAMILY, HELLO)
        await until(lambda: not old.exists())
