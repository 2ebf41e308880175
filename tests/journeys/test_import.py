"""A NanoClaw moves into a real host while it runs, and its chats go on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hallporter.sandboxes.machine import interpreter
from tests.cli.command import hallporter
from tests.imports.home import MAIN, WEB, lived_in, picture
from tests.journeys.host import Host, running, settings

PATIENCE = 30.0  # seconds: for an answer on a busy machine

# The agent of the group `notes`: it came along with the group's files.
AGENT = """
import json, sys
start = json.load(sys.stdin)
memory = open("/workspace/group/CLAUDE.md").read()
told = {
    "memory": memory, "session": start.get("sessionId"), "name": start["assistantName"],
    "heard": len(start["messages"]), "task": start["isScheduledTask"],
}
print("---NANOCLAW_OUTPUT_START---")
print(json.dumps({"status": "success", "result": json.dumps(told), "newSessionId": "the-next"}))
print("---NANOCLAW_OUTPUT_END---")
"""


class Watch:
    """Waits for events of a host's log."""

    def __init__(self, host: Host) -> None:
        self._happened: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        host.on_event = self._happened.put_nowait

    async def until(self, event: str, chat: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                line = await self._happened.get()
                if (line["event"], line.get("chat")) == (event, chat):
                    return


async def test_a_nanoclaw_moves_in_and_its_chats_go_on(tmp_path: Path) -> None:
    source, home = lived_in(tmp_path), tmp_path / "home"
    source.write("groups/notes/CLAUDE.md", "The milk is in the fridge.\n")
    source.write("groups/notes/agent.py", AGENT)
    source.write("data/sessions/notes/.claude/projects/-workspace-group/s.jsonl", "{}\n")
    source.insert("sessions", group_folder="notes", session_id="from-before")
    before = picture(source.path)
    command = [interpreter(), "/workspace/group/agent.py"]
    settings(home, f"[groups.notes.agent]\nkind = 'command'\ncommand = {json.dumps(command)}\n")
    async with running(home) as host, host.client() as client:
        watch = Watch(host)
        done = await hallporter(home, *source.arguments, "--json")
        assert done.code == 0, done.err
        assert done.json["counts"]["messages"]["carried"] == 11

        # A chat whose channel is here: same session, same memory, and nothing old is answered.
        said = await hallporter(home, "chat", "--chat", WEB, "--once", "where is the milk?")
        assert said.code == 0, said.err
        await watch.until("reply.sent", WEB)
        assert json.loads(said.out) == {
            "memory": "The milk is in the fridge.\n",
            "session": "from-before",
            "name": "Andy",
            "heard": 1,
            "task": False,
        }
        words = (await client.get(f"/api/chats/{WEB}/messages")).json()["messages"]
        assert [one["text"] for one in words][:2] == ["remember the milk", "where is the milk?"]

        # Its task goes on as well, in no session: that is what it was set to.
        assert (await client.post("/api/tasks/task-4/run")).status_code == 200
        await watch.until("reply.sent", WEB)
        (tick,) = (await client.get("/api/tasks/task-4/ticks")).json()["data"]
        assert tick["state"] == "ran"
        last = (await client.get(f"/api/chats/{WEB}/messages")).json()["messages"][-1]
        assert json.loads(last["text"])["task"] is True

        # A chat whose channel is not here: the group is there, and what it says has a fate.
        assert (await client.get("/api/groups/main")).json()["data"]["chat"] == MAIN
        assert (await client.post("/api/tasks/task-2/run")).status_code == 200
        await watch.until("reply.undeliverable", MAIN)
        reply = (await client.get(f"/api/chats/{MAIN}/messages")).json()["messages"][-1]
        fate = (await client.get(f"/api/messages/{reply['id']}/fate")).json()
        assert fate["state"] == "undeliverable"
        assert fate["steps"][-1]["why"] == "no channel serves this chat"

        again = await hallporter(home, *source.arguments, "--json")
        assert again.json["counts"]["messages"] == {"carried": 0, "there": 11, "skipped": 0}
    assert picture(source.path) == before
