"""A file's way from a sandbox to its reader, through a real host."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from hallporter.sandboxes.machine import interpreter
from tests.cli.command import hallporter
from tests.journeys.host import running, settings

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
