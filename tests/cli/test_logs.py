from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hallporter.cli import logbook
from hallporter.cli.logbook import Wanted
from hallporter.logs import LogFile, log_files
from tests.cli.command import COMMAND, PATIENCE, hallporter

NOW = datetime.now(UTC)


def entry(event: str, *, level: str = "info", minutes_ago: int = 0, **fields: object) -> str:
    at = (NOW - timedelta(minutes=minutes_ago)).isoformat()
    return json.dumps({**fields, "event": event, "level": level, "timestamp": at})


def log_of(home: Path, *lines: str, max_size: int = 1 << 20) -> LogFile:
    (home / "logs").mkdir(parents=True, exist_ok=True)
    file = LogFile(home / "logs" / "hallporter.log", max_size=max_size, keep=9)
    for line in lines:
        file.write(line)
    return file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    log_of(
        tmp_path,
        entry("ready", minutes_ago=90, url="http://127.0.0.1:3100"),
        entry("turn.claimed", minutes_ago=50, chat="web:main", turn="t_1"),
        entry("turn.failed", level="warning", minutes_ago=49, chat="web:main", turn="t_1"),
        entry("turn.claimed", minutes_ago=5, chat="web:family", turn="t_2"),
        entry("turn.broke", level="error", minutes_ago=4, chat="web:family", turn="t_2"),
        max_size=200,
    ).close()
    return tmp_path


async def test_the_log_is_read_across_files_that_were_put_aside(home: Path) -> None:
    done = await hallporter(home, "logs", "--json")
    assert len(list((home / "logs").iterdir())) > 2
    assert [line["event"] for line in done.json] == [
        "ready",
        "turn.claimed",
        "turn.failed",
        "turn.claimed",
        "turn.broke",
    ]


@pytest.mark.parametrize(
    ("arguments", "events"),
    [
        (["--chat", "web:main"], ["turn.claimed", "turn.failed"]),
        (["--turn", "t_2"], ["turn.claimed", "turn.broke"]),
        (["--level", "warning"], ["turn.failed", "turn.broke"]),
        (["--level", "error"], ["turn.broke"]),
        (["--since", "40m"], ["turn.claimed", "turn.broke"]),
        (["--since", (NOW - timedelta(hours=1)).isoformat(), "-n", "3"], None),
        (["-n", "1"], ["turn.broke"]),
        (["-n", "0"], []),
        (["--chat", "web:main", "--level", "error"], []),
    ],
)
async def test_the_log_can_be_sifted(
    home: Path, arguments: list[str], events: list[str] | None
) -> None:
    done = await hallporter(home, "logs", "--json", *arguments)
    assert done.code == 0
    expected = ["turn.failed", "turn.claimed", "turn.broke"] if events is None else events
    assert [line["event"] for line in done.json] == expected


async def test_a_line_is_for_people(home: Path) -> None:
    done = await hallporter(home, "logs", "--turn", "t_1", "--level", "warning")
    at = (NOW - timedelta(minutes=49)).isoformat()[:19].replace("T", " ")
    assert done.out == f"{at}  warning  turn.failed  chat=web:main turn=t_1\n"


async def test_nothing_to_show_is_said(tmp_path: Path, home: Path) -> None:
    nowhere = await hallporter(tmp_path / "other", "logs")
    nothing = await hallporter(home, "logs", "--chat", "web:nobody")
    assert (nowhere.code, nowhere.out) == (0, "")
    assert "no host has written" in nowhere.err
    assert not (tmp_path / "other").exists()
    assert nothing.err == "nothing matches\n"


async def test_the_help_names_every_level(tmp_path: Path) -> None:
    told = (await hallporter(tmp_path, "logs", "--help")).out
    assert "critical" in told
    assert "range" not in told.casefold()


@pytest.mark.parametrize("wrong", [["--level", "loud"], ["--since", "soon"], ["-n", "-1"]])
async def test_wrong_usage_is_refused(tmp_path: Path, wrong: list[str]) -> None:
    assert (await hallporter(tmp_path, "logs", *wrong)).code == 2


async def test_following_goes_on_across_files(home: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("--home", str(home), "logs", "-f", "-n", "1", "--json"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            told = [json.loads(await process.stdout.readline())["event"]]
            file = log_of(home, *(entry(f"event.{n}") for n in range(20)), max_size=200)
            told += [json.loads(await process.stdout.readline())["event"] for _ in range(3)]
            file.close()
    finally:
        process.terminate()
        await process.wait()
    assert told[0] == "turn.broke"


def test_a_follower_misses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    file = log_of(tmp_path, entry("event.0"), entry("event.1"), max_size=10_000)
    path = tmp_path / "logs" / "hallporter.log"
    numbers = itertools.count(2)

    def go_on() -> None:
        for _ in range(7):  # more than two files' worth
            file.write(entry(f"event.{next(numbers)}", padding="x" * 3000))

    with contextlib.closing(
        logbook.follow(lambda: log_files(path), Wanted(), 10, go_on)
    ) as entries:
        told = [next(entries)["event"] for _ in range(30)]
    file.close()
    assert told == [f"event.{n}" for n in range(30)]


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "hallporter.log"
    whole = entry("event.1")
    path.write_text(whole[:20])

    def finish() -> None:
        path.write_text(f"{whole}\n")

    with contextlib.closing(logbook.follow(lambda: [path], Wanted(), 10, finish)) as entries:
        assert next(entries)["event"] == "event.1"


def test_a_value_cannot_forge_a_line() -> None:
    line = logbook.line_of({"event": "sent\nready", "who": "a\x1b[31m b", "n": 3, "none": None})
    assert "\n" not in line
    assert "\x1b" not in line
    assert r'"sent\nready"' in line
    assert "n=3 none=null" in line


def test_a_traceback_is_told_by_its_places() -> None:
    trace = [{"exc_type": "ValueError", "exc_value": "no", "frames": [{"filename": "a.py"}]}]
    line = logbook.line_of({"event": "turn.broke", "level": "error", "exception": trace})
    assert line.splitlines()[1:] == ["    ValueError: no  at a.py:?"]


def test_a_line_that_is_no_json_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "hallporter.log"
    path.write_bytes(b"Killed \xff\n[1]\n")
    entries = logbook.read([path, tmp_path / "gone"], Wanted(), 10)
    assert [one["event"] for one in entries] == ["Killed \ufffd", "[1]"]
