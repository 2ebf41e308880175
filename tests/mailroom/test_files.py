"""Files that go along with an agent's message: copied from its folder, once, or refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hallporter.channels.splitting import MIN_LIMIT
from hallporter.domain.command import Box, SendMessage
from hallporter.domain.ids import ChatId, CommandId
from hallporter.ports import Capabilities
from hallporter.switchboard.commands import Asked
from tests.mailroom.post import FAMILY, MAIN, WORK, Post, chat_of, open_post

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hallporter.domain.message import Message
    from hallporter.domain.outbox import Outgoing

pytestmark = pytest.mark.anyio

LOST = "fake:lost"  # a chat that no group has


def request(file: str, text: str = "look", **more: str) -> dict[str, str]:
    return {"type": "message", "text": text, "file": file, **more}


def write(home: Path, folder: str, name: str, content: bytes = b"content") -> Path:
    path = home / "groups" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def copies(home: Path) -> dict[str, bytes]:
    """By their place below `data/media`."""
    media = home / "data" / "media"
    return {
        str(path.relative_to(media)): path.read_bytes()
        for path in media.glob("**/*")
        if path.is_file()
    }


async def messages(post: Post, folder: str = FAMILY) -> Sequence[Message]:
    chat = chat_of(folder)
    return await post.store.read(lambda tx: tx.messages.page(chat, 0, 100))


async def waiting(post: Post, folder: str = FAMILY) -> Sequence[Outgoing]:
    chat = chat_of(folder)
    return await post.store.read(lambda tx: tx.outbox.pending(chat, 100))


def let_files_through(post: Post) -> None:
    post.channel.capabilities = Capabilities(
        limit=None, typing=True, takes_message_id=True, files=True
    )


@pytest.mark.parametrize("path", ["out/plan.pdf", "/workspace/group/out/plan.pdf"])
async def test_a_file_goes_along_with_its_message(tmp_path: Path, path: str) -> None:
    write(tmp_path, FAMILY, "out/plan.pdf", b"%PDF")
    async with open_post(tmp_path) as post:
        let_files_through(post)
        told = await post.answer(FAMILY, request(path))
        assert told["ok"], told
        (message,) = await messages(post)
        (row,) = await waiting(post)
    (file,) = message.files
    assert (message.text, file.name, file.size, file.type) == (
        "look",
        "plan.pdf",
        4,
        "application/pdf",
    )
    assert [(part.body, part.files) for part in row.parts] == [("look", (file,))]
    assert copies(tmp_path) == {f"family/{file.id}": b"%PDF"}


async def test_a_file_may_go_without_words(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "a.txt")
    async with open_post(tmp_path) as post:
        let_files_through(post)
        assert (await post.answer(FAMILY, request("a.txt", text="")))["sent"] is True
        (message,) = await messages(post)
    assert message.text == ""
    assert len(message.files) == 1


async def test_where_a_network_takes_no_files_the_words_say_so(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "a.txt")
    async with open_post(tmp_path) as post:
        assert (await post.answer(FAMILY, request("a.txt")))["ok"]
        assert (await post.answer(FAMILY, request("a.txt", text="")))["ok"]
        rows = await waiting(post)
        assert [message.text for message in await messages(post)] == ["look", ""]
    line = "(file a.txt could not be sent here)"
    assert [part.body for row in rows for part in row.parts] == [f"look\n\n{line}", line]
    assert not any(part.files for row in rows for part in row.parts)


async def test_a_file_goes_behind_the_last_part_of_its_words(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "a.txt")
    async with open_post(tmp_path) as post:
        post.channel.capabilities = Capabilities(
            limit=MIN_LIMIT, typing=True, takes_message_id=True, files=True
        )
        assert (await post.answer(FAMILY, request("a.txt", text="word " * 50)))["ok"]
        (row,) = await waiting(post)
    assert len(row.parts) > 2
    assert [len(part.files) for part in row.parts] == [*[0] * (len(row.parts) - 1), 1]


async def test_words_and_files_keep_their_order(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "big", b"x" * 4_000_000)
    async with open_post(tmp_path, is_serving=False) as post:
        post.box(FAMILY, "messages").mkdir(parents=True)
        for number in range(12):
            words = {"type": "message", "text": f"{number}"}
            asked = request("big", f"{number}") if number % 3 == 0 else words
            post.ask(FAMILY, asked, name=f"{number:03d}.json")
    async with open_post(tmp_path) as post:
        await post.quiet()
        assert await post.said(chat_of(FAMILY)) == [str(number) for number in range(12)]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("missing.txt", "there is no file 'missing.txt'"),
        ("../work/secret", "'..'"),
        ("/workspace/group/../work/secret", "'..'"),
        ("/etc/hostname", "lies elsewhere"),
        ("/workspace/global/rules.md", "only the main group"),
        ("link", "by a link"),
        ("away/secret", "by a link"),
        ("", "name one below"),
    ],
)
async def test_a_file_that_cannot_be_sent_stops_its_message_and_says_why(
    tmp_path: Path, path: str, why: str
) -> None:
    write(tmp_path, WORK, "secret", b"not yours")
    write(tmp_path, "global", "rules.md")
    (tmp_path / "groups" / FAMILY).mkdir()
    (tmp_path / "groups" / FAMILY / "link").symlink_to("../work/secret")
    (tmp_path / "groups" / FAMILY / "away").symlink_to("../work")
    async with open_post(tmp_path) as post:
        told = await post.answer(FAMILY, request(path))
        assert not told["ok"]
        assert why in told["error"]
        assert str(tmp_path) not in told["error"]
        assert await messages(post) == []
        assert (await post.answer(FAMILY, {"type": "message", "text": "next"}))["ok"]
        assert post.put_aside() == {}
        rows = await post.store.read(lambda tx: tx.commands.all(FAMILY, 10))
        assert sorted(row.is_ok for row in rows) == [False, True]
    assert copies(tmp_path) == {}


async def test_main_sends_its_own_and_shared_files_anywhere(tmp_path: Path) -> None:
    write(tmp_path, "global", "rules.md", b"rules")
    write(tmp_path, MAIN, "plan.pdf", b"plan")
    async with open_post(tmp_path) as post:
        let_files_through(post)
        await post.channel_hears(LOST)
        shared = request("/workspace/global/rules.md", target_jid=chat_of(FAMILY))
        assert (await post.answer(MAIN, shared))["ok"]
        assert (await post.answer(MAIN, request("plan.pdf", target_jid=LOST)))["ok"]
        (message,) = await messages(post)
        (lost,) = await post.store.read(lambda tx: tx.messages.files(ChatId(LOST)))
    assert copies(tmp_path) == {
        # With the chat that has it, so that it is forgotten with it.
        f"family/{message.files[0].id}": b"rules",
        f"main/{lost.id}": b"plan",
    }


async def test_what_may_not_be_said_is_not_even_looked_at(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "a.txt")
    async with open_post(tmp_path) as post:
        told = await post.answer(FAMILY, request("a.txt", target_jid=chat_of(WORK)))
        assert "its own chat only" in told["error"]
    assert copies(tmp_path) == {}


@pytest.mark.parametrize(
    "name",
    [
        "Grüße 東京 🎉.txt",
        "<script>alert(1)</script>".replace("/", "-") + ".html",
        '"; filename="x.exe',
        "a\nb.txt",
        "invoice\u202efdp.exe",
        "'$(reboot)`.sh",
        "-rf",
        "x" * 255,
    ],
)
async def test_a_hostile_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, FAMILY, name)
    async with open_post(tmp_path) as post:
        let_files_through(post)
        assert (await post.answer(FAMILY, request(name)))["ok"]
        (message,) = await messages(post)
    (file,) = message.files
    assert file.name.isprintable()
    assert copies(tmp_path) == {f"family/{file.id}": b"content"}


def asked(file: str, text: str = "look") -> Asked:
    return Asked(
        id=CommandId("c_1"),
        folder=FAMILY,
        box=Box.MESSAGES,
        name="1.json",
        command=SendMessage(text=text, file=file),
    )


async def test_a_host_that_dies_behind_the_copy_sends_the_file_once(tmp_path: Path) -> None:
    path = write(tmp_path, FAMILY, "a.txt", b"first")
    async with open_post(tmp_path, is_serving=False) as post:
        await post.commands.prepare(asked("a.txt"))
        assert len(copies(tmp_path)) == 1
    async with open_post(tmp_path, is_serving=False) as post:
        await post.commands.carry_out(await post.commands.prepare(asked("a.txt")))
        path.unlink()
    async with open_post(tmp_path, is_serving=False) as post:  # before the result was written
        carried = await post.commands.carry_out(await post.commands.prepare(asked("a.txt")))
        assert carried.is_ok
        (message,) = await messages(post)
    assert copies(tmp_path)[f"family/{message.files[0].id}"] == b"first"
    assert len(copies(tmp_path)) == 2, "the one without a message is for the nightly sweep"


async def test_a_copy_whose_message_is_refused_goes_at_once(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "a.txt")
    async with open_post(tmp_path, is_serving=False) as post:
        prepared = await post.commands.prepare(asked("a.txt"))
        long = SendMessage(text="look", sender="x" * 100, file="a.txt")
        assert len(copies(tmp_path)) == 1
        carried = await post.commands.carry_out(
            Asked(
                id=prepared.id,
                folder=prepared.folder,
                box=prepared.box,
                name=prepared.name,
                command=long,
                file=prepared.file,
            )
        )
    assert not carried.is_ok
    assert copies(tmp_path) == {}


async def test_a_file_that_nobody_fetched_is_not_left_out_silently(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "a.txt")
    async with open_post(tmp_path, is_serving=False) as post:
        carried = await post.commands.carry_out(asked("a.txt"))
    assert (carried.is_ok, carried.why) == (False, "the file could not be fetched: ask again")


async def test_a_retry_is_told_which_files_went_along(tmp_path: Path) -> None:
    write(tmp_path, FAMILY, "a.txt")
    async with open_post(tmp_path) as post:
        await post.answer(FAMILY, request("a.txt"))
        since = post.clock.now()
        chat = chat_of(FAMILY)
        sent = await post.store.read(lambda tx: tx.messages.sent(chat, 0, since))
    assert sent == ["look\n\n(with the file a.txt)"]


async def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "groups" / FAMILY).mkdir(parents=True)
    os.mkfifo(tmp_path / "groups" / FAMILY / "a.txt")
    async with open_post(tmp_path) as post:
        told = await post.answer(FAMILY, request("a.txt"))
    assert "is no file" in told["error"]
