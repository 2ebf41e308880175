"""The log of a run: kept beside the agent's files, capped, and never led astray."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallporter.agents.run_log import RunLog


def logs(group: Path) -> list[str]:
    return sorted(path.name for path in (group / "logs").iterdir())


def test_it_keeps_both_streams_and_how_it_ended(tmp_path: Path) -> None:
    log = RunLog(tmp_path, "agent-1", 100)
    log.write("stdout", b"out\n")
    log.write("stderr", b"err\n")
    log.close("exit code 0")

    assert (tmp_path / "logs/agent-1.log").read_text() == "out\nerr\n\n[exit code 0]\n"


def test_each_stream_is_cut_at_the_limit(tmp_path: Path) -> None:
    log = RunLog(tmp_path, "agent-1", 10)
    log.write("stdout", b"o" * 6)
    log.write("stdout", b"o" * 6)
    log.write("stdout", b"never")
    log.write("stderr", b"e" * 4)
    log.close("exit code 1")

    text = (tmp_path / "logs/agent-1.log").read_text()
    assert text == "oooooooooo\n[stdout cut here]\neeee\n[exit code 1]\n"


def test_a_stream_that_fits_exactly_is_not_called_cut(tmp_path: Path) -> None:
    log = RunLog(tmp_path, "agent-1", 4)
    log.write("stdout", b"oooo")
    log.close("end")

    assert (tmp_path / "logs/agent-1.log").read_text() == "oooo\n[end]\n"


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for number in range(30):
        RunLog(tmp_path, f"agent-{number:02}", 10).close("end")

    assert logs(tmp_path) == [f"agent-{number:02}.log" for number in range(10, 30)]


def test_what_is_no_log_of_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/diary.md").touch()
    (tmp_path / "logs/a-folder.log").mkdir()
    for number in range(25):
        RunLog(tmp_path, f"agent-{number:02}", 10).close("end")

    assert {"diary.md", "a-folder.log"} <= set(logs(tmp_path))


@pytest.mark.rule("R7")
def test_a_linked_logs_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for number in range(25):
        (outside / f"precious-{number:02}.log").touch()
    group = tmp_path / "group"
    group.mkdir()
    (group / "logs").symlink_to(outside)

    RunLog(group, "agent-1", 10).close("end")

    assert len(list(outside.iterdir())) == 25
    assert logs(group) == ["agent-1.log"]


def test_a_link_that_waits_under_the_logs_name_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/agent-1.log").symlink_to(target)

    log = RunLog(tmp_path, "agent-1", 10)
    log.write("stdout", b"out")
    log.close("end")

    assert target.read_text() == "precious"


def test_a_log_that_cannot_be_written_does_not_end_the_conversation(tmp_path: Path) -> None:
    group = tmp_path / "group"
    group.write_text("not a folder")

    log = RunLog(group, "agent-1", 10)
    log.write("stdout", b"out")
    log.close("end")

    assert group.read_text() == "not a folder"
