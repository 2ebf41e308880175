from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import hallporter

GREET = ("tasks", "add", "main", "--prompt", "Say good morning.")


async def test_tasks_live_without_a_host(tmp_path: Path) -> None:
    made = await hallporter(
        tmp_path, *GREET, "--cron", "0 9 * * 1-5", "--tz", "Europe/Paris", "--json"
    )
    task = made.json["id"]
    listed = await hallporter(tmp_path, "tasks", "list")
    paused = await hallporter(tmp_path, "tasks", "pause", task)
    changed = await hallporter(
        tmp_path, "tasks", "update", task, "--every", "60000", "--isolated", "--json"
    )
    resumed = await hallporter(tmp_path, "tasks", "resume", task)
    run = await hallporter(tmp_path, "tasks", "run", task)
    history = await hallporter(tmp_path, "tasks", "history", task)
    ticks = await hallporter(tmp_path, "tasks", "history", task, "--last", "1", "--json")
    cancelled = await hallporter(tmp_path, "tasks", "cancel", task)
    empty = await hallporter(tmp_path, "tasks", "list", "main", "--json")

    done = (made, listed, paused, changed, resumed, run, history, ticks, cancelled, empty)
    assert [one.code for one in done] == [0] * len(done), [one.err for one in done]
    assert made.json["timezone"] == "Europe/Paris"
    assert made.json["next_run"].endswith("Z")
    assert "0 9 * * 1-5" in listed.out
    assert "Say good morning." in listed.out
    assert paused.out == f"The task {task} is paused.\n"
    assert (changed.json["status"], changed.json["context_mode"]) == ("paused", "isolated")
    assert (changed.json["schedule_type"], changed.json["schedule_value"]) == ("interval", "60000")
    assert "is resumed. Next run: " in resumed.out
    assert "runs when the host does" in run.out
    assert "run by hand" in history.out
    (tick,) = ticks.json
    assert (tick["state"], tick["attempts"]) == ("due", 0)
    assert cancelled.out == f"The task {task} is gone, and so are its ticks.\n"
    assert empty.json == []


async def test_a_time_that_the_clocks_skip_is_noted_and_the_status_shows_the_real_one(
    tmp_path: Path,
) -> None:
    done = await hallporter(
        tmp_path, *GREET, "--at", "2099-03-29T02:30", "--tz", "Europe/Berlin", "--json"
    )
    assert done.json["next_run"] == "2099-03-29T01:30:00Z"
    assert "it will be 2099-03-29T03:30:00" in done.err
    status = await hallporter(tmp_path, "status")
    words = " ".join(status.out.split())
    assert "tasks active 1" in words
    assert "next tick 2099-03-29 01:30:00 UTC" in words


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((*GREET,), 2, "name one of --cron, --every and --at"),
        ((*GREET, "--cron", "@daily", "--every", "5000"), 2, "only one of"),
        (("tasks", "update", "none"), 2, "nothing to change"),
        ((*GREET, "--cron", "every day"), 1, "a cron expression has five"),
        (("tasks", "history", "none"), 1, "no task has the id 'none'"),
    ],
)
async def test_what_cannot_be_is_told(
    tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = await hallporter(tmp_path, *arguments)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
