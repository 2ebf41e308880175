"""A file is for those who may read its chat, and comes as a download that nobody runs."""

from __future__ import annotations

from email.message import Message
from pathlib import Path

import httpx
import pytest

from tests.api.enclosing import HOSTILE, say_with_file
from tests.api.front import ADMIN, MAIN, Front, served
from tests.api.test_stream import listening


@pytest.fixture(autouse=True)
async def groups(front: Front) -> None:
    await front.register()
    await front.register("web:family", "family")


def disposition(answer: httpx.Response) -> tuple[str, str | None]:
    """As a mail program or a browser takes the header apart."""
    parsed = Message()
    parsed["Content-Disposition"] = answer.headers["content-disposition"]
    return parsed.get_content_disposition() or "", parsed.get_filename()


async def test_a_message_names_its_files_and_where_they_are(front: Front, tmp_path: Path) -> None:
    file = await say_with_file(front, tmp_path)
    await front.say("thanks")
    async with front.client() as operator:
        page = (await operator.get(f"/api/chats/{MAIN}/messages")).json()
    first, second = page["messages"]
    assert first["files"] == [
        {
            "id": file.id,
            "name": "plan.pdf",
            "size": 8,
            "type": "application/pdf",
            "url": f"/api/chats/web:main/files/{file.id}",
        }
    ]
    assert "files" not in second


async def test_those_who_follow_are_told_the_same(front: Front, tmp_path: Path) -> None:
    async with served(front) as url, listening(url, **{"last-event-id": "0"}) as stream:
        file = await say_with_file(front, tmp_path)
        await front.say("thanks")  # what the store has taken silently comes with the next news
        event = await stream.next()
    assert event is not None
    assert [one["id"] for one in event.data["files"]] == [file.id]


async def test_it_comes_whole_and_as_a_download(front: Front, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    file = await say_with_file(front, tmp_path, name="page.html", content=content)
    async with front.client() as operator:
        answer = await operator.get(f"/api/chats/{MAIN}/files/{file.id}")
    assert answer.status_code == 200
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert disposition(answer) == ("attachment", "page.html")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert answer.headers["cache-control"] == "no-store"


async def test_an_empty_file_is_a_file(front: Front, tmp_path: Path) -> None:
    file = await say_with_file(front, tmp_path, content=b"")
    async with front.client() as operator:
        answer = await operator.get(f"/api/chats/{MAIN}/files/{file.id}")
    assert (answer.status_code, answer.headers["content-length"]) == (200, "0")


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_stays_a_name(front: Front, tmp_path: Path, name: str) -> None:
    file = await say_with_file(front, tmp_path, name=name)
    async with front.client() as operator:
        answer = await operator.get(f"/api/chats/{MAIN}/files/{file.id}")
    assert answer.status_code == 200
    assert disposition(answer) == ("attachment", file.name)
    assert "set-cookie" not in answer.headers


async def test_only_the_chats_readers_get_it(front: Front, tmp_path: Path) -> None:
    file = await say_with_file(front, tmp_path)
    family = await front.token(chat="web:family")
    expected = {
        ADMIN: 200,
        await front.token(): 200,
        family: 404,
        await front.token(chat=None): 404,
        "hp_unknown": 401,
        "": 401,
    }
    for token, status in expected.items():
        async with front.client(token) as client:
            answer = await client.get(f"/api/chats/{MAIN}/files/{file.id}")
        assert answer.status_code == status, token
        assert (b"%PDF" in answer.content) == (status == 200)
    async with front.client(family) as client:  # nor by the way of another chat
        assert (await client.get(f"/api/chats/web:family/files/{file.id}")).status_code == 404


@pytest.mark.parametrize(
    "id", ["f_none", "..", "%2e%2e", "..%2f..%2frun%2fadmin-token", "%00", "x" * 300]
)
async def test_what_is_no_file_of_the_chat_is_not_found(
    front: Front, tmp_path: Path, id: str
) -> None:
    await say_with_file(front, tmp_path)
    async with front.client() as operator:
        answer = await operator.get(f"/api/chats/{MAIN}/files/{id}")
    assert answer.status_code == 404
    assert answer.json()["error"] == "NOT_FOUND"


async def test_a_file_that_is_no_longer_kept_is_not_found_and_says_so(
    front: Front, tmp_path: Path
) -> None:
    file = await say_with_file(front, tmp_path)
    (tmp_path / "data/media/main" / file.id).unlink()
    async with front.client() as operator:
        answer = await operator.get(f"/api/chats/{MAIN}/files/{file.id}")
        page = (await operator.get(f"/api/chats/{MAIN}/messages")).json()
    assert answer.status_code == 404
    assert answer.json()["message"] == "the file 'plan.pdf' is no longer kept"
    assert page["messages"][0]["files"][0]["name"] == "plan.pdf"
