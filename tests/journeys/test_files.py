"""A file's way from a sandbox to its reader, through a real host."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from hallporter.sandboxes.machine import interpreter
from tests.cli.command import hallporter
from tests.journeys.browser import (
    DESKTOP,
    PHONE,
    chromium,
    overflow,
    picture,
    violations,
    window,
)
from tests.journeys.host import running, settings

PAGE = "<script>document.title = 'run'; alert(1)</script>"
POSTMAN = Path(__file__).parents[1] / "programs" / "postman.py"
MESSAGES = "/api/chats/web:family/messages"
GROUP = {"chat": "web:family", "name": "F", "folder": "family", "requires_trigger": False}


async def test_an_agent_sends_a_file_and_its_reader_gets_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings(
        home,
        "[groups.family.agent]\nkind = 'command'\n"
        f"command = [{interpreter()!r}, '/workspace/group/postman.py']\n",
    )
    (home / "groups" / "family").mkdir(parents=True)
    shutil.copy(POSTMAN, home / "groups" / "family" / "postman.py")
    async with running(home) as host, host.client() as client:
        assert (await client.post("/api/groups", json=GROUP)).status_code == 201
        shown = await hallporter(home, "chat", "--chat", "web:family", "--once", "go")
        _, sent, answer = (await client.get(MESSAGES)).json()["messages"]
        (file,) = sent["files"]
        fetched = await client.get(file["url"])
        assert (await client.post("/api/forget", json={"chat": "web:family"})).status_code == 200
        forgotten = await client.get(file["url"])
    assert sent["text"] == "file 1", "before the answer (R12)"
    assert (file["name"], file["type"]) == ("Report \u05d0.html", "text/html")
    assert fetched.text == "<script>alert(1)</script>"
    assert fetched.headers["content-disposition"].startswith("attachment;")
    told = json.loads(answer["text"])
    assert told[0] == "sent"
    assert "by a link" in told[1]
    assert "'..'" in told[2]
    assert "there is no file 'none'" in told[3]
    assert shown.code == 0, shown.err
    assert f"file 1\n[file Report \u05d0.html, 25 B: {file['url']}]\n" in shown.out
    assert forgotten.status_code == 404
    assert not (home / "data" / "media" / "family").exists()


def send(home: Path, name: str, content: str) -> None:
    """As main's agent would, whoever that is."""
    (home / "groups" / "main" / name).write_text(content)
    box = home / "data" / "ipc" / "main" / "messages"
    request = {"type": "message", "text": "Here it is.", "file": name}
    (box / "1.tmp").write_text(json.dumps(request))
    (box / "1.tmp").rename(box / f"{len(name):03d}.json")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_person_downloads_a_file_from_the_page(
    tmp_path: Path, shape: dict[str, Any]
) -> None:
    home = tmp_path / "home"
    async with (
        running(home) as host,
        chromium() as browser,
        window(browser, host.url, shape) as person,
    ):
        page = await person.tab(await host.link())
        (home / "groups" / "main").mkdir(exist_ok=True)
        send(home, "Plan (\u05d0\u05d1).html", PAGE)
        send(home, f"<img src=x onerror=alert(1)> {'long ' * 40}.txt", "words " * 9000)
        links = page.locator("#log .files a")
        await expect(links).to_have_count(2)
        async with page.expect_download() as started:
            await links.first.click()
        download = await started.value
        assert Path(await download.path()).read_text() == PAGE
        assert download.suggested_filename == "Plan (\u05d0\u05d1).html"
        assert page.url == f"{host.url}/"
        assert await overflow(page) <= 0
        await picture(page, f"files-{shape['color_scheme']}")
        assert await violations(page) == []
        assert (person.errors, person.foreign) == ([], [])
