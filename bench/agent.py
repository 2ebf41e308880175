"""The stub agent: answers at once, and says in its answer when it saw and wrote what.

It runs alone in a sandbox, without the rest of this folder. The words of a message tell it what to
do: `once` answer and exit, `hold` answer and go on waiting in the same turn, `hang` say nothing the
first time (a later start answers); anything else: answer and stay.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

WORKSPACE = Path(os.environ["HALLPORTER_WORKSPACE"])
TRAY = WORKSPACE / "ipc" / "input"
HUNG = WORKSPACE / "group" / "hung"

_IN_MOVED_TO = 0x80


def main() -> None:
    """One life: stdin, then files until `_close`."""
    asked = json.loads(sys.stdin.buffer.read())
    seen = time.time_ns()
    words = asked["prompt"]
    if "hang" in words and not HUNG.exists():
        HUNG.touch()
        time.sleep(3600)
    answer("stdin", seen, asked["through"], is_idle="hold" not in words)
    if "once" in words:
        return
    news = watch()
    while True:
        for name in sorted(os.listdir(TRAY)):  # noqa: PTH208  quicker than paths
            if name == "_close":
                return
            if name.endswith(".json"):
                take(TRAY / name, time.time_ns())
        os.read(news, 4096)


def take(file: Path, seen: int) -> None:
    """Take a follow-up out of the tray and answer it."""
    asked = json.loads(file.read_bytes())
    file.unlink()
    answer("file", seen, asked["through"], is_idle="hold" not in asked["content"])


def answer(source: str, seen: int, through: int, *, is_idle: bool) -> None:
    """One block, all of it in one write; the last thing before the write is to look at the time."""
    stamps = json.dumps({"from": source, "seen": seen, "block": time.time_ns()})
    block = {"status": "success", "result": stamps, "through": through, "idle": is_idle}
    text = f"---NANOCLAW_OUTPUT_START---\n{json.dumps(block)}\n---NANOCLAW_OUTPUT_END---\n"
    os.write(1, text.encode())


def watch() -> int:
    """A descriptor that can be read when something was put into the tray."""
    import ctypes  # noqa: PLC0415  not part of the start that is measured

    libc = ctypes.CDLL(None, use_errno=True)
    news: int = libc.inotify_init1(os.O_CLOEXEC)
    if news < 0 or libc.inotify_add_watch(news, str(TRAY).encode(), _IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "the input folder cannot be watched")
    return news


if __name__ == "__main__":
    main()
