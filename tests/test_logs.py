from __future__ import annotations

import contextlib
import json
import os
import pty
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from hallporter.logs import LogFile, log_files

LINE = "x" * 99  # a hundred bytes with its end

PROGRAM = """
import logging, sys
from pathlib import Path
import structlog
from hallporter.logs import LogFile, configure

configure("info", LogFile(Path(sys.argv[1]), max_size=1 << 20, keep=2))
log = structlog.get_logger()
log.debug("too.quiet")
with structlog.contextvars.bound_contextvars(chat="web:main", turn="t_1"):
    log.info("turn.claimed", attempt=1)
logging.getLogger("library").warning("it is %s", "odd")

def answer(token):
    text = "what people said"
    raise ValueError("no")

try:
    answer("hp_secret")
except ValueError:
    log.exception("turn.broke")
"""


HOSTILE = """
import logging, sys
from pathlib import Path
import structlog
from hallporter.logs import LogFile, configure

attack = "\\x1b]52;c;cm0=\\x07 \\x9b2J \\u202e \\x1b[2J\\nforged line"
configure("info", LogFile(Path(sys.argv[1]), max_size=1 << 20, keep=2))
log = structlog.get_logger()
log.warning("agent.exited", why=attack, lines=[attack])
logging.getLogger("library").warning(attack)
try:
    raise ValueError(attack)
except ValueError:
    log.exception("turn.broke")
"""
OBEYED = ("\x1b]", "\x07", "\x9b", "\u202e", "\x1b[2J")


def at_terminal(tmp_path: Path, program: str) -> str:
    """What a program's stderr shows to the one who sits there."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        command = [sys.executable, "-c", program, str(tmp_path / "hallporter.log")]
        with subprocess.Popen(command, stderr=theirs) as process:
            os.close(theirs)
            told = b""
            with contextlib.suppress(OSError):  # how a terminal says that nobody is left
                while chunk := terminal.read(4096):
                    told += chunk
        assert process.returncode == 0, told
    return told.decode()


def run(tmp_path: Path) -> tuple[list[dict[str, Any]], str]:
    file = tmp_path / "hallporter.log"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in file.read_text().splitlines()], done.stderr


def written(tmp_path: Path, *, lines: int, keep: int) -> Path:
    path = tmp_path / "hallporter.log"
    file = LogFile(path, max_size=1000, keep=keep)
    for number in range(lines):
        file.write(f"{number:04d}" + LINE[4:])
    file.close()
    return path


def numbers(files: list[Path]) -> list[int]:
    return [int(line[:4]) for file in files for line in file.read_text().splitlines()]


def test_a_full_file_is_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    path = written(tmp_path, lines=45, keep=2)
    files = list(log_files(path))
    assert [file.name for file in files] == [
        "hallporter.log.2",
        "hallporter.log.1",
        "hallporter.log",
    ]
    assert all(file.stat().st_size <= 1000 for file in files)
    assert numbers(files) == list(range(20, 45))


def test_a_new_host_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    written(tmp_path, lines=7, keep=2)
    path = written(tmp_path, lines=7, keep=2)
    assert numbers(list(log_files(path))) == [*range(7), *range(7)]
    assert [file.stat().st_size for file in log_files(path)] == [1000, 400]


def test_fewer_kept_files_take_effect_at_the_next_turn_over(tmp_path: Path) -> None:
    written(tmp_path, lines=60, keep=5)
    path = written(tmp_path, lines=1, keep=1)
    assert len(log_files(path)) == 2


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "hallporter.log.old"
    other.write_text("mine")
    path = written(tmp_path, lines=60, keep=1)
    assert other.read_text() == "mine"
    assert other not in log_files(path)


def test_lines_of_many_threads_stay_whole(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "hallporter.log", max_size=5000, keep=100)

    def write(digit: str) -> None:
        for _ in range(50):
            file.write(digit * 99)

    writers = [threading.Thread(target=write, args=(digit,)) for digit in "1234"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    file.close()
    files = log_files(tmp_path / "hallporter.log")
    lines = [line for one in files for line in one.read_text().splitlines()]
    assert len(lines) == 200
    assert set(lines) == {digit * 99 for digit in "1234"}


def test_a_file_that_cannot_be_written_ends_nobody(tmp_path: Path) -> None:
    LogFile(tmp_path / "missing" / "hallporter.log", max_size=1000, keep=1).write(LINE)
    assert log_files(tmp_path / "missing" / "hallporter.log") == []


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = written(tmp_path, lines=1, keep=1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_holds_what_stderr_shows(tmp_path: Path) -> None:
    lines, stderr = run(tmp_path)
    claimed, foreign, broke = lines
    assert (claimed["event"], claimed["chat"], claimed["turn"]) == (
        "turn.claimed",
        "web:main",
        "t_1",
    )
    assert (foreign["logger"], foreign["event"], foreign["level"]) == (
        "library",
        "it is odd",
        "warning",
    )
    assert broke["exception"][0]["exc_type"] == "ValueError"
    assert json.loads(stderr.splitlines()[0]) == claimed


def test_a_traceback_tells_no_variables(tmp_path: Path) -> None:
    lines, stderr = run(tmp_path)
    for told in (json.dumps(lines), stderr):
        assert "hp_secret" not in told
        assert "what people said" not in told


def test_no_word_of_an_agent_commands_the_terminal_that_shows_the_log(tmp_path: Path) -> None:
    told = at_terminal(tmp_path, HOSTILE)
    assert [one for one in OBEYED if one in told] == []
    exited = next(line for line in told.splitlines() if "agent.exited" in line)
    assert r"\x1b]52;c;cm0=\x07 \x9b2J \u202e \x1b[2J\nforged line" in exited
    assert told.count("turn.broke") == 1


def test_nor_do_the_lines_that_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "hallporter.log"
    command = [sys.executable, "-c", HOSTILE, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for told in (done.stderr, file.read_text()):
        assert [one for one in OBEYED if one in told] == []
    exited = json.loads(file.read_text().splitlines()[0])
    assert exited["why"].startswith("\x1b]52;c;cm0=\x07 \x9b2J \u202e")
