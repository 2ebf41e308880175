"""What agents have put into NanoClaw's folder or database leads nowhere and holds up nobody."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hallporter.imports.snapshot import LONGEST
from tests.imports.home import SCHEMA, WEB, Source, empty, lived_in
from tests.imports.house import House, counted, open_house, remarks

# Nothing in it is refused by the database itself.
LOOSE = SCHEMA.replace(" NOT NULL", "").replace(" UNIQUE", "").replace("TEXT PRIMARY KEY", "TEXT")
ENDLESS = """
CREATE VIEW {table} AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n FROM n)
SELECT n AS id, 'web:notes' AS chat_jid, n AS content FROM n
"""
AT = "2026-02-01T09:00:00.000Z"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A folder of the owner's, outside of everything."""
    (tmp_path / "private" / "notes" / ".claude").mkdir(parents=True)
    for folder in ("", "notes", "notes/.claude"):
        (tmp_path / "private" / folder / "secret.txt").write_text("the owner's")
    return tmp_path / "private"


def stolen(house: House) -> list[Path]:
    return list(house.path.rglob("secret.txt"))


@pytest.mark.parametrize("folder", ["{secret}", "../../private", "other", "global"])
@pytest.mark.parametrize("is_known", [False, True])
async def test_a_second_row_of_a_chat_brings_no_folder_along(
    tmp_path: Path, house: House, secret: Path, folder: str, *, is_known: bool
) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(WEB, "notes")
    source.write("groups/notes/CLAUDE.md", "Mine.")
    source.write("groups/other/secret.txt", "another group's")
    if is_known:
        await house.move_in(source)
    source.group(WEB, folder.format(secret=secret))
    report = await house.move_in(source)
    assert report["counts"]["groups"]["skipped"] == 1
    assert stolen(house) == []
    assert (house.path / "groups" / "notes" / "CLAUDE.md").read_text() == "Mine."


@pytest.mark.parametrize("folder", ["{secret}", "../../private", ".", "..", "a/b"])
async def test_a_group_that_is_here_already_takes_no_folder_from_elsewhere(
    tmp_path: Path, house: House, secret: Path, folder: str
) -> None:
    source = empty(tmp_path)
    await house.front.register(WEB, "notes")
    source.group(WEB, folder.format(secret=secret))
    report = await house.move_in(source)
    assert "is not allowed" in remarks(report, "skipped")
    assert stolen(house) == []


async def test_two_chats_of_one_folder_do_not_share_it(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(WEB, "notes")
    source.group("web:thief", "notes")
    source.write("groups/notes/CLAUDE.md", "Mine.")
    report = await house.move_in(source)
    assert "['notes'] its folder is there twice" in remarks(report, "skipped")
    assert "web:thief" not in await house.groups()
    assert (house.path / "groups" / "notes" / "CLAUDE.md").read_text() == "Mine."


@pytest.mark.parametrize("link", ["groups", "data", "data/sessions", "data/sessions/notes"])
async def test_a_link_above_a_folder_is_not_followed(
    tmp_path: Path, house: House, secret: Path, link: str
) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    source.insert("sessions", group_folder="notes", session_id="s")
    (secret / "sessions" / "notes").mkdir(parents=True)
    (secret / "sessions" / "notes" / ".claude").symlink_to(secret)
    (source.path / link).parent.mkdir(parents=True, exist_ok=True)
    (source.path / link).symlink_to(secret / "notes" if link.endswith("notes") else secret)
    for is_dry_run in (True, False):
        report = await house.move_in(source, is_dry_run=is_dry_run)
        assert counted(report, "carried").get("files", 0) == 0
        assert "a link or a file is in the place of a folder" in remarks(report, "skipped")
    assert stolen(house) == []
    assert (await house.chat(WEB)).session_id is None


async def test_a_store_that_is_a_link_is_refused(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    (source.path / "store").rename(tmp_path / "elsewhere")
    (source.path / "store").symlink_to(tmp_path / "elsewhere")
    assert "store/messages.db cannot be read: a link" in await refused(house, source)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    (path.parent / "other").write_text("ASSISTANT_NAME=Mona")
    path.symlink_to("other")


def _endless(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 42)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_pipe, "it is no regular file"),
        (_link, "it is a link"),
        (_endless, "it has more than 1,048,576 bytes"),
    ],
)
async def test_an_env_that_is_no_plain_file_is_not_read(
    tmp_path: Path, house: House, make: Callable[[Path], None], why: str
) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    make(source.path / ".env")
    report = await house.move_in(source)
    assert f".env cannot be read ({why}" in remarks(report, "note")
    assert counted(report, "carried") == {"groups": 1}


@pytest.mark.parametrize("name", ["sender-allowlist.json", "mount-allowlist.json"])
@pytest.mark.parametrize("make", [_pipe, _endless])
async def test_an_allow_list_that_is_no_plain_file_is_not_read(
    tmp_path: Path, house: House, name: str, make: Callable[[Path], None]
) -> None:
    source = empty(tmp_path)
    make(source.config / name)
    assert f"['{name}'] it cannot be read" in remarks(await house.move_in(source), "skipped")


async def test_an_allow_list_may_be_a_link_of_its_owners(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    source.allow("sender-allowlist.json", {"default": {"allow": ["alice"]}})
    listed = source.config / "sender-allowlist.json"
    listed.rename(tmp_path / "mine.json")
    listed.symlink_to(tmp_path / "mine.json")
    await house.move_in(source)
    assert (await house.groups())[WEB]["senders"]["allow"] == ["alice"]


@pytest.mark.parametrize("table", ["messages", "Scheduled_Tasks"])
@pytest.mark.parametrize(
    "statement",
    [
        ENDLESS,
        "CREATE VIRTUAL TABLE {table} USING fts5(id)",
    ],
)
async def test_what_is_computed_is_no_table(
    tmp_path: Path, house: House, table: str, statement: str
) -> None:
    source = lived_in(tmp_path)
    source.run(f"DROP TABLE {table}")
    source.run(statement.format(table=table))
    assert f"{table.lower()!r} in it is no table" in await refused(house, source)


async def test_rows_that_are_too_long_are_left_out_alone(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path, LOOSE)
    long = "x" * (LONGEST + 1)
    source.chat(WEB, long)
    source.chat("web:other", "Other")
    source.group("web:long", "long", container_config=long)
    source.group(WEB, "notes")
    source.say(WEB, "1", "before", AT)
    source.say(WEB, "2", long, AT)
    source.say(WEB, "3", "no time", long)
    source.say(WEB, "4", "x" * (LONGEST - 1), AT)
    source.say(WEB, "5", "after", AT)
    source.task("t", "notes", WEB, "cron", "@daily", prompt=long)
    report = await house.move_in(source)
    said = await house.said(WEB)
    assert [words[:10] for words in said] == ["before", "xxxxxxxxxx", "after"]
    assert counted(report, "carried") == {"chats": 1, "groups": 1, "messages": 3}
    assert counted(report, "skipped") == {"chats": 1, "groups": 1, "messages": 2, "tasks": 1}
    told = remarks(report, "skipped")
    for row in ("row 2 of messages", "row 3 of messages", "row 1 of registered_groups"):
        assert f"'{row}'" in told
    assert f"something in it has more than {LONGEST:,} bytes" in told


async def test_a_table_that_leads_back_to_itself_comes_to_an_end(
    tmp_path: Path, house: House
) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    for number in range(3):
        source.say(WEB, f"{number}", f"words {number}", f"2026-02-01T09:00:0{number}.000Z")
    _turn_back(source, "messages")
    report = await house.move_in(source)
    assert await house.said(WEB) == ["words 0", "words 1", "words 2"]
    assert "its rows are out of order" in remarks(report, "skipped")


def _turn_back(source: Source, table: str) -> None:
    """Pages that lead to pages, a hundred times each and ten deep: to the same rows in the end."""
    root, size = source.root_of(table)
    raw = bytearray(source.database.read_bytes())
    count = len(raw) // size
    leaf = raw[(root - 1) * size : root * size]
    below = count + 1
    raw += leaf
    for _ in range(10):
        raw += _inner(below, size)
        below += 1
    raw[(root - 1) * size : root * size] = raw[(below - 1) * size : below * size]
    raw[28:32] = (len(raw) // size).to_bytes(4, "big")
    source.database.write_bytes(bytes(raw))


def _inner(below: int, size: int) -> bytes:
    """A page of SQLite's that only leads to another: its cells are a page and a row's number."""
    cell = below.to_bytes(4, "big") + b"\x01"
    places = [size - len(cell) * (number + 1) for number in range(100)]
    head = b"\x05\0\0" + len(places).to_bytes(2, "big") + places[-1].to_bytes(2, "big") + b"\0"
    head += below.to_bytes(4, "big") + b"".join(place.to_bytes(2, "big") for place in places)
    return head.ljust(places[-1], b"\0") + cell * len(places)


async def test_ids_that_are_alike_stay_apart(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path)
    source.group(WEB, "notes")
    source.group("web:other", "other")
    for id_, folder, chat in (("a.0", "notes", WEB), ("a-0", "other", "web:other")):
        source.task(id_, folder, chat, "cron", "@daily", prompt=f"I am {id_}.")
    source.task(f"{'x' * 70}1", "notes", WEB, "cron", "@daily")
    source.task(f"{'x' * 70}2", "notes", WEB, "cron", "@daily")
    source.ran("a.0", AT, "of a.0")
    source.ran("a-0", "2026-02-02T09:00:00.000Z", "of a-0")
    dry = await house.move_in(source, is_dry_run=True)
    report = await house.move_in(source)
    for told in (dry, report):
        assert counted(told, "carried")["tasks"] == 4
    tasks = await house.tasks()
    assert all(len(id_) <= 64 for id_ in tasks)
    by_prompt = {task["prompt"]: task for task in tasks.values()}
    mended, plain = by_prompt["I am a.0."], by_prompt["I am a-0."]
    assert (plain["id"], plain["group"], mended["group"]) == ("a-0", "other", "notes")
    assert f"['a.0'] its id does not fit here, or is taken: it has '{mended['id']}'" in remarks(
        report, "mended"
    )
    for task, why in ((mended, "of a.0"), (plain, "of a-0")):
        ticks = (await house.get(f"/api/tasks/{task['id']}/ticks"))["data"]
        assert [tick["why"] for tick in ticks] == [why]
    again = await house.move_in(source)
    assert (counted(again, "carried"), counted(again, "there")["tasks"]) == ({}, 4)
    assert await house.tasks() == tasks


async def test_a_task_of_another_group_here_is_not_taken_for_theirs(
    tmp_path: Path, house: House
) -> None:
    (tmp_path / "first").mkdir()
    ours = empty(tmp_path / "first")
    ours.group("web:mine", "mine")
    ours.task("daily", "mine", "web:mine", "cron", "@daily", prompt="Mine.")
    await house.move_in(ours)
    source = empty(tmp_path)
    source.group(WEB, "notes")
    source.task("daily", "notes", WEB, "cron", "@daily", prompt="Theirs.")
    source.ran("daily", AT, "of theirs")
    for count in (1, 0):
        report = await house.move_in(source)
        assert counted(report, "carried").get("tasks", 0) == count
    assert (await house.get("/api/tasks/daily/ticks"))["data"] == []
    groups = {task["prompt"]: task["group"] for task in (await house.tasks()).values()}
    assert groups == {"Mine.": "mine", "Theirs.": "notes"}


async def test_an_id_that_is_there_twice_counts_once(tmp_path: Path, house: House) -> None:
    source = empty(tmp_path, LOOSE)
    source.group(WEB, "notes")
    source.group("web:other", "other")
    source.task("t", "notes", WEB, "often", "?")
    source.task("t", "other", "web:other", "cron", "@daily")
    source.ran("t", AT, "of the first")
    report = await house.move_in(source)
    assert counted(report, "skipped") == {"tasks": 2, "ticks": 1}
    assert await house.tasks() == {}


async def refused(house: House, source: Source) -> str:
    body = {"path": str(source.path), "config": str(source.config)}
    async with house.front.client() as operator:
        answer = await operator.post("/api/imports/nanoclaw", json=body)
    assert answer.status_code == 400
    assert not (house.path / "run" / "importing").exists()
    return str(answer.json()["message"])
