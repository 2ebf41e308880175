"""`backup`, `restore` and `forget` as people type them."""

from __future__ import annotations

import asyncio
import os
import pty
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from hallporter.clock import SystemClock
from hallporter.stores import migrations
from hallporter.stores.backup import Source, write_backup
from hallporter.stores.sqlite import open_store
from tests.cli.command import COMMAND, hallporter
from tests.journeys.host import Host, running, settings

T = TypeVar("T")

PATIENCE = 30.0  # seconds


async def test_a_new_home_can_be_backed_up_and_restored(tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    made = await hallporter(tmp_path / "one", "backup", str(file))
    assert made.code == 0, made.err
    assert made.out == f"{file}: 1 chat, 1 group, 1 file, {made.out.split()[-2]} MiB.\n"
    assert made.err.splitlines()[-1] == "backup: 100 %"
    restored = await hallporter(tmp_path / "two", "restore", str(file), "--json")
    assert restored.code == 0, restored.err
    assert restored.json["rows"]["groups"] == 1
    assert restored.json["moved_aside"] is None
    groups = await hallporter(tmp_path / "two", "groups", "list", "--json")
    assert [group["folder"] for group in groups.json] == ["main"]


async def test_a_home_in_use_is_not_restored_over(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "b.tar.gz"
    await hallporter(home, "backup", str(file))
    refused = await hallporter(home, "restore", str(file))
    assert refused.code == 1
    assert "is not empty (hallporter.db)" in refused.err
    assert "--force" in refused.err
    async with running(home):
        held = await hallporter(home, "restore", str(file), "--force")
    assert held.code == 1
    assert "is held by process" in held.err
    forced = await hallporter(home, "restore", str(file), "--force")
    assert forced.code == 0, forced.err
    [aside] = home.glob("before-restore-*")
    assert str(aside) in forced.out
    assert (aside / "hallporter.db").exists()


async def test_a_bad_file_changes_nothing(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "b.tar.gz"
    file.write_text("hello")
    for name in (str(file), "nowhere.tar.gz"):
        refused = await hallporter(home, "restore", name)
        assert refused.code == 1
        assert refused.err.count("\n") == 1, refused.err
    assert not (home / "hallporter.db").exists()
    assert not (home / "run" / "restoring").exists()


async def test_settings_that_have_the_database_in_a_folder_s_place_change_nothing(
    tmp_path: Path,
) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar.gz"
    assert (await hallporter(home, "status")).code == 0
    settings(home, '[store]\nurl = "sqlite:///groups"\n')
    source = Source(home=home, database=home / "hallporter.db")
    write_backup(file, source, version="9", made_at="then", report=lambda *_: None)
    refused = await hallporter(other, "restore", str(file))
    assert (refused.code, refused.out) == (1, "")
    assert f"have the database at {other}/groups, which is another" in refused.err
    assert "Traceback" not in refused.err
    assert not (other / "hallporter.toml").exists()
    assert not (other / "run" / "restoring").exists()


async def test_browsers_have_to_log_in_anew_after_a_restore(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar.gz"
    async with running(home) as host, browsing(host) as browser:
        await browser.get((await hallporter(home, "link")).out.strip())
        kept = dict(browser.cookies)
        assert (await browser.get("/")).status_code == 200
        assert (await hallporter(home, "backup", str(file))).code == 0
    restored = await hallporter(other, "restore", str(file))
    assert "Browsers have to log in anew." in restored.out
    async with running(other) as host, browsing(host) as browser:
        browser.cookies.update(kept)
        assert (await browser.get("/")).status_code == 401


def browsing(host: Host) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=host.url, trust_env=False)


async def test_a_database_elsewhere_is_taken_along_and_put_back_there(tmp_path: Path) -> None:
    home, file, database = tmp_path / "home", tmp_path / "b.tar.gz", tmp_path / "disk" / "x.db"
    database.parent.mkdir()
    settings(home, f'[store]\nurl = "sqlite:///{database}"\n')
    assert (await hallporter(home, "backup", str(file))).code == 0
    refused = await hallporter(tmp_path / "other", "restore", str(file))
    assert refused.code == 1
    assert str(database) in refused.err
    assert not (tmp_path / "other" / "run" / "restoring").exists()
    shutil.rmtree(database.parent)
    assert (await hallporter(tmp_path / "other", "restore", str(file))).code == 0
    assert database.exists()
    assert not (tmp_path / "other" / "hallporter.db").exists()


async def test_a_database_that_another_host_serves_is_not_moved_from_under_it(
    tmp_path: Path,
) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "b.tar.gz"
    database = tmp_path / "disk" / "x.db"
    database.parent.mkdir()
    settings(home, f'[store]\nurl = "sqlite:///{database}"\n')
    async with running(home) as host:
        assert (await hallporter(home, "backup", str(file))).code == 0
        refused = await hallporter(other, "restore", str(file), "--force")
        assert (refused.code, refused.out) == (1, "")
        assert f"the database {database} is in use" in refused.err
        assert "HALLPORTER_STORE__URL" in refused.err
        assert not (other / "hallporter.toml").exists()
        async with host.client() as client:
            assert (await client.get("/readyz")).status_code == 200
        host.kill()
        await host.process.wait()
    forced = await hallporter(other, "restore", str(file), "--force")
    assert forced.code == 0, forced.err
    [aside] = database.parent.glob("before-restore-*")
    assert f"The database that was there before is in {aside}." in forced.out
    with sqlite3.connect(aside / "x.db") as kept:
        assert kept.execute("SELECT folder FROM groups").fetchall() == [("main",)]


async def test_at_a_terminal_there_is_a_bar(tmp_path: Path) -> None:
    """stderr is a terminal here, stdout is not."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--home",
        str(tmp_path / "home"),
        "backup",
        str(tmp_path / "b.tar.gz"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = await asyncio.to_thread(read_all, ours)
    async with asyncio.timeout(PATIENCE):
        assert await process.wait() == 0, shown
    assert "━" in shown
    assert "backup" in shown


def read_all(terminal: int) -> str:
    found = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # how a terminal without anyone at the other end says so
            data = b""
        if not data:
            os.close(terminal)
            return found.decode("utf-8", "replace")
        found += data


async def poll(ask: Callable[[], Awaitable[T]]) -> T:
    """The first answer that is not empty."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await ask()):  # noqa: ASYNC110  the host is another process
            await asyncio.sleep(0.05)
    return found


async def get(host: Host, path: str) -> Any:
    async with host.client() as client:
        return (await client.get(path)).json()["data"]


async def agents(host: Host) -> list[Any]:
    return list((await get(host, "/api/status"))["agents"])


async def said(host: Host, chat: str = "web:main") -> list[str]:
    async with host.client() as client:
        page = (await client.get(f"/api/chats/{chat}/messages")).json()
    return [message["text"] for message in page["messages"] if message["is_bot"]]


async def test_forgetting_a_chat_of_a_running_host_stops_its_agent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home) as host:
        async with host.client() as client:
            body = {"text": "count to 600", "id": "long"}
            await client.post("/api/chats/web:main/messages", json=body)
        await poll(lambda: agents(host))
        (home / "groups" / "main" / "memory.md").write_text("a secret")
        done = await hallporter(home, "forget", "web:main", "--yes")
        assert done.code == 0, done.err
        assert done.out.startswith("web:main is forgotten: ")
        assert "1 turn" in done.out
        assert not (home / "groups" / "main" / "memory.md").exists()
        assert await agents(host) == []
        async with host.client() as client:
            assert (await client.get("/api/messages/long/fate")).status_code == 404
        again = await hallporter(home, "chat", "--once", "hello")
        assert again.code == 0, again.err
    gone = await hallporter(home, "forget", "web:nowhere", "--yes")
    assert (gone.code, gone.out) == (1, "")
    assert "nothing was removed" in gone.err


async def test_nothing_is_forgotten_without_a_yes(tmp_path: Path) -> None:
    memory = tmp_path / "groups" / "main" / "memory.md"
    memory.parent.mkdir(parents=True)
    memory.write_text("a secret")
    refused = await hallporter(tmp_path, "forget", "web:main", stdin="y\n")
    assert (refused.code, refused.out) == (1, "")
    assert "say --yes to forget web:main" in refused.err
    for answer, code in (("n", 1), ("y", 0)):
        assert memory.exists()
        shown = await at_a_terminal(tmp_path, "forget", "web:main", answer=answer, code=code)
        assert "and its files, for good? [y/N]" in shown
    assert not memory.exists()


async def at_a_terminal(home: Path, *arguments: str, answer: str, code: int) -> str:
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "--home", str(home), *arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    shown = await asyncio.to_thread(read_all, ours)
    async with asyncio.timeout(PATIENCE):
        assert await process.wait() == code, shown
    return shown


async def test_a_file_that_is_no_backup_is_overwritten_by_force_only(tmp_path: Path) -> None:
    file = tmp_path / "diary.txt"
    file.write_text("dear diary")
    refused = await hallporter(tmp_path / "home", "backup", str(file))
    assert (refused.code, refused.out) == (1, "")
    assert "is no backup" in refused.err
    assert (await hallporter(tmp_path / "home", "backup", str(file), "--force")).code == 0
    assert (await hallporter(tmp_path / "home", "backup", str(file))).code == 0


@pytest.mark.parametrize("is_purge", [False, True])
async def test_no_file_of_a_running_host_holds_what_was_forgotten(
    tmp_path: Path, is_purge: bool
) -> None:
    words, home = "the-combination-is-1234", tmp_path / "home"

    def holding() -> list[str]:
        files = [path for path in home.rglob("*") if path.is_file()]
        return [path.name for path in files if words.encode() in path.read_bytes()]

    family = ("web:family", "--name", "Family", "--folder", "family", "--no-trigger")
    async with running(home):
        assert (await hallporter(home, "groups", "add", *family)).code == 0
        told = await hallporter(home, "chat", "--chat", "web:family", "--once", words)
        assert told.code == 0, told.err
        assert "hallporter.db-wal" in holding()
        if is_purge:
            done = await hallporter(home, "groups", "remove", "family", "--purge", "--yes")
        else:
            await hallporter(home, "groups", "remove", "family")
            done = await hallporter(home, "forget", "web:family", "--yes")
            assert "It has no group." in done.out
        assert done.code == 0, done.err
        assert holding() == []
        assert not (home / "groups" / "family").exists()


async def test_what_a_killed_forgetting_has_left_goes_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "groups" / ".forgotten-0123" / "memory.md"
    left.parent.mkdir(parents=True)
    left.write_text("a secret")
    assert (await hallporter(tmp_path, "status")).code == 0
    assert not left.parent.exists()


async def test_an_agent_that_cannot_start_is_a_notice_in_status_and_in_mains_chat(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    settings(home, '[groups.broken.agent]\nkind = "command"\n')
    async with running(home) as host:
        added = await hallporter(
            home, "groups", "add", "web:b", "--name", "B", "--folder", "broken", "--no-trigger"
        )
        assert added.code == 0, added.err
        async with host.client() as client:
            await client.post("/api/chats/web:b/messages", json={"text": "hello"})
        [notice] = await poll(lambda: get(host, "/api/notices"))
        assert notice["key"] == "failing:web:b"
        assert notice["told"]
        assert await said(host) == [notice["text"]]
        shown = await hallporter(home, "status")
        assert "The agent of 'broken' keeps failing" in shown.out


async def test_a_migration_is_told_in_mains_chat_at_the_next_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    *earlier, last = migrations.load("sqlite")
    async with open_store(home / "hallporter.db", SystemClock(), earlier):
        pass  # as an older version would have left it
    shown = await hallporter(home, "status", "--json")
    assert [notice["key"] for notice in shown.json["notices"]] == ["migrated"]
    assert not shown.json["notices"][0]["told"], "nobody serves the chat yet"
    async with running(home) as host:
        told = await poll(lambda: said(host))
    assert len(told) == 1
    assert f"schema {last.number}" in told[0]


@pytest.mark.parametrize("command", ["backup", "restore", "forget"])
async def test_the_commands_explain_themselves(tmp_path: Path, command: str) -> None:
    done = await hallporter(tmp_path, command, "--help")
    assert done.code == 0
    assert (await hallporter(tmp_path, command)).code == 2
