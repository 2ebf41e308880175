from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import socket
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from hallporter.cli.doctor import _mended, _verdict
from hallporter.sandboxes import leftovers
from tests.cli.command import COMMAND, PATIENCE, Done, hallporter
from tests.journeys.host import running, settings


def about(done: Done, what: str) -> list[dict[str, Any]]:
    return [one for one in done.json["findings"] if one["about"] == what]


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    settings(path, f"[host]\nport = {free_port()}\n")
    return path


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        (["ok", "ok"], "All is well."),
        (["ok", "warning"], "Nothing is broken. There is 1 warning: see above."),
        (["warning", "warning"], "Nothing is broken. There are 2 warnings: see above."),
        (["warning", "problem"], "Something is wrong: see above."),
    ],
)
def test_the_verdict_counts_the_warnings(levels: list[str], verdict: str) -> None:
    findings = [{"level": level, "mended": ""} for level in levels]
    mended = {"level": "warning", "mended": "closed to others"}
    found = {"is_well": "problem" not in levels, "findings": [*findings, mended]}
    assert _verdict(found) == verdict


async def test_a_new_home_is_well(home: Path) -> None:
    done = await hallporter(home, "doctor")
    assert (done.code, done.err) == (0, "")
    assert ("All is well." in done.out) == ("\nwarning " not in done.out)
    assert "the agent of 'main' (demo) can start in bubblewrap" in done.out
    assert "host.port" in done.out
    assert "hallporter.toml" in done.out
    assert "mended" not in done.out


async def test_what_opening_mends_is_told_and_the_rest_waits_for_fix(home: Path) -> None:
    await hallporter(home, "status")
    (home / ".env").write_text("KEY=value\n")
    (home / ".env").chmod(0o644)
    (home / "data" / "claims").rmdir()
    home.chmod(0o755)
    looked = await hallporter(home, "doctor", "--json")
    open_home = stat.S_IMODE(home.stat().st_mode)
    fixed = await hallporter(home, "doctor", "--fix", "--json")
    again = await hallporter(home, "doctor", "--json")
    told = {one["what"].split(" (")[0]: one for one in about(looked, "home")}
    assert looked.code == 1
    assert told[f"others may read {home}/.env"]["mended"] == "mended by opening the home"
    assert told[f"{home}/data/claims is missing"]["mended"] == "mended by opening the home"
    assert told[f"others may look into {home}"]["can_fix"] is True
    assert open_home == 0o755
    assert fixed.code == 0
    assert about(fixed, "home")[0]["mended"] == f"{home} has mode 0700 now"
    assert again.code == 0
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_what_changes_by_itself_was_not_mended_by_opening_the_home() -> None:
    disk = {"about": "disk", "level": "warning", "what": "only 480 MiB are free", "mended": ""}
    folder = {"about": "home", "level": "problem", "what": "run/ is missing", "mended": ""}
    told = _mended([disk, folder], [{**disk, "what": "only 479 MiB are free"}])
    assert [one["about"] for one in told] == ["home"]


async def test_wrong_settings_are_told_one_by_one(home: Path) -> None:
    settings(home, '[host]\nport = "high"\nlog_level = "loud"\n')
    done = await hallporter(home, "doctor")
    assert done.code == 1
    assert "PROBLEM settings: host.port" in done.out
    assert "PROBLEM settings: host.log_level" in done.out
    assert "sandboxes and agents were not looked at" in done.out


async def test_a_damaged_database_is_told(home: Path) -> None:
    (home / "hallporter.db").write_bytes(b"not a database" * 1000)
    done = await hallporter(home, "doctor", "--json")
    (found,) = [one for one in about(done, "database") if one["level"] == "problem"]
    assert done.code == 1
    assert "restore a backup" in found["do"]


async def on_a_full_disk(tmp_path: Path, first: str) -> Done:
    """`doctor` in a home on a disk of 3 MiB that is full, after `first` was run with room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    home = f"{disk}/home"
    command = shlex.join([*COMMAND, "--home", home])
    script = f"{first.format(command)}; cat /dev/zero >{disk}/ballast; {command} doctor --json"
    words = ["bwrap", "--dev-bind", "/", "/", "--size", str(3 << 20), "--tmpfs", str(disk)]
    process = await asyncio.create_subprocess_exec(
        *words, "sh", "-c", script, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Done(code=process.returncode, out=out.decode(), err=err.decode())


async def test_a_full_disk_is_named_as_the_cause(tmp_path: Path) -> None:
    done = await on_a_full_disk(tmp_path, "{} status >/dev/null")
    (disk,) = about(done, "disk")
    (opened,) = about(done, "database")
    assert done.code == 1
    assert disk["what"] == "the home's disk is full: messages cannot be stored"
    assert "make room" in disk["do"]
    assert "the disk is full" in opened["what"]
    assert about(done, "clock")[0]["level"] == "ok"
    assert about(done, "port")
    assert [one["what"] for one in about(done, "host")] == [
        "sandboxes and agents were not looked at"
    ]


async def test_a_home_that_cannot_be_made_on_a_full_disk_says_so(tmp_path: Path) -> None:
    done = await on_a_full_disk(tmp_path, "true")
    assert done.code == 1
    assert about(done, "host")[0]["what"] == (
        f"the disk is full: make room where {tmp_path}/disk/home lies"
    )


async def test_a_finding_in_several_lines_stays_under_its_mark(home: Path) -> None:
    await hallporter(home, "status")
    database = home / "hallporter.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        find = "SELECT rootpage FROM sqlite_master WHERE type = 'index' LIMIT 1"
        ((page,),) = connection.execute(find).fetchall()
    content = bytearray(database.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = bytes(4096)
    database.write_bytes(content)
    done = await hallporter(home, "doctor")
    _, _, told = done.out.partition("PROBLEM database: ")
    lines = told.partition("\nok ")[0].splitlines()
    assert len(lines) > 2
    assert all(line.startswith(" " * 10) for line in lines[1:])


async def test_a_home_that_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = await hallporter(tmp_path / "file", "doctor")
    assert done.code == 1
    assert "is not a folder" in done.out


async def test_a_lock_that_is_no_file_is_told(home: Path) -> None:
    await hallporter(home, "status")
    (home / "run" / "lock").unlink()
    (home / "run" / "lock").mkdir()
    done = await hallporter(home, "doctor", "--json")
    (found,) = [one for one in about(done, "home") if one["level"] == "problem"]
    assert done.code == 1
    assert found["what"].startswith(f"{home}/run/lock is no file")


async def test_a_taken_port_and_a_broken_agent_are_told(home: Path) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        port = door.getsockname()[1]
        settings(home, f'[host]\nport = {port}\n[agent]\nkind = "command"\ncommand = ["gone"]\n')
        done = await hallporter(home, "doctor", "--json")
    (taken,) = about(done, "port")
    (agent,) = about(done, "agents")
    assert done.code == 1
    assert "taken by another program" in taken["what"]
    assert "the program gone is not there" in agent["what"]
    assert "command in [agent] of hallporter.toml" in agent["do"]


async def test_a_kind_of_agent_that_is_not_there_is_told(home: Path) -> None:
    settings(home, f'[host]\nport = {free_port()}\n[agent]\nkind = "openai"\n')
    done = await hallporter(home, "doctor", "--json")
    (agent,) = about(done, "agents")
    assert done.code == 1
    assert "not part of this version" in agent["what"]
    assert "kind in [agent] of hallporter.toml" in agent["do"]


async def test_settings_for_nobody_are_told(home: Path) -> None:
    settings(home, f"[host]\nport = {free_port()}\n[groups.nosuch.agent]\nmemory = '64m'\n")
    done = await hallporter(home, "doctor", "--json")
    told = [one["what"] for one in about(done, "settings") if one["level"] == "warning"]
    values = {one["key"]: one["value"] for one in done.json["settings"]}
    assert done.code == 0
    assert told == [
        "groups.nosuch.agent from hallporter.toml has no effect: no group has this folder"
    ]
    assert values["groups.nosuch.agent.memory"] == "64m"
    assert values["store.url"] == "sqlite:///hallporter.db"


async def test_stray_boxes_are_ended_while_no_host_runs(home: Path) -> None:
    await hallporter(home, "status")
    label = (home / "run" / "installation").read_text().strip()
    stray = await asyncio.create_subprocess_exec(
        "sleep", "600", env={**os.environ, leftovers.MARK: f"{label}/old-box"}
    )
    looked = await hallporter(home, "doctor", "--json")
    fixed = await hallporter(home, "doctor", "--fix", "--json")
    async with asyncio.timeout(10):
        await stray.wait()
    (found,) = about(looked, "boxes")
    assert (looked.code, fixed.code) == (0, 0)  # a warning: the next start ends them
    assert (found["level"], found["can_fix"]) == ("warning", True)
    assert "old-box" in found["what"]
    assert [one["mended"] for one in about(fixed, "boxes")] == [
        "what was left was ended and removed",
        "",
    ]


async def test_a_running_host_is_asked_and_mends_its_home(home: Path) -> None:
    async with running(home) as host:
        said = await hallporter(home, "chat", "--once", "hello")
        (home / ".env").write_text("HALLPORTER_HOST__ASSISTANT_NAME=Bea\n")
        (home / ".env").chmod(0o644)
        looked = await hallporter(home, "doctor", "--json")
        status = (await hallporter(home, "status", "--json")).json
        fixed = await hallporter(home, "doctor", "--fix")
    assert said.code == 0
    assert about(looked, "port")[0]["what"] == f"this host listens at {host.url}"
    assert about(looked, "home")[0]["mended"] == "mended by opening the home"
    assert "host.assistant_name has changed since the host began" in [
        one["what"] for one in about(looked, "settings")
    ]
    assert about(looked, "boxes")[0]["level"] == "ok"
    assert about(looked, "host")[0]["what"] == "channels and engine work"
    (agent,) = status["agents"]
    assert agent["memory"] > 1 << 20
    assert agent["age"] > 0
    assert status["storage"]["database"] > 0
    assert fixed.code == 0, fixed.out
