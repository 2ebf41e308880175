"""A file below its message: a link that can be read, and that opens to who is logged in."""

from __future__ import annotations

from pathlib import Path

import pytest
from markupsafe import escape

from tests.api.enclosing import HOSTILE, say_with_file
from tests.api.front import MAIN
from tests.web.hall import Hall


async def test_a_file_is_a_link_with_its_size_below_the_words(hall: Hall, tmp_path: Path) -> None:
    file = await say_with_file(hall.front, tmp_path, content=b"x" * 48_213)
    async with hall.browser() as client:
        page = (await client.get("/")).text
        answer = await client.get(f"/chats/{MAIN}/files/{file.id}")
    link = f'<a href="/chats/web%3Amain/files/{file.id}"><bdi>plan.pdf</bdi></a>'
    assert f"{link} <span>48.2 kB</span>" in page
    assert (answer.status_code, len(answer.content)) == (200, 48_213)
    assert answer.headers["content-disposition"] == 'attachment; filename="plan.pdf"'
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "application/octet-stream"


async def test_a_message_without_files_has_no_list_of_them(hall: Hall) -> None:
    await hall.front.say("hello")
    async with hall.browser() as client:
        assert 'class="files"' not in (await client.get("/")).text


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_is_shown_and_does_nothing(
    hall: Hall, tmp_path: Path, name: str
) -> None:
    file = await say_with_file(hall.front, tmp_path, name=name)
    async with hall.browser() as client:
        page = (await client.get("/")).text
        answer = await client.get(f"/chats/{MAIN}/files/{file.id}")
    assert f"<bdi>{escape(file.name)}</bdi>" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment;")


async def test_a_stranger_is_sent_to_the_door(hall: Hall, tmp_path: Path) -> None:
    file = await say_with_file(hall.front, tmp_path)
    async with hall.stranger() as client:
        answer = await client.get(f"/chats/{MAIN}/files/{file.id}")
    assert answer.status_code in (303, 401)
    assert b"%PDF" not in answer.content


async def test_what_is_not_there_is_not_found(hall: Hall, tmp_path: Path) -> None:
    file = await say_with_file(hall.front, tmp_path)
    await hall.front.register("web:reader", "reader")
    async with hall.browser() as client:
        for path in (f"web:reader/files/{file.id}", f"web:none/files/{file.id}", f"{MAIN}/files/x"):
            assert (await client.get(f"/chats/{path}")).status_code == 404
