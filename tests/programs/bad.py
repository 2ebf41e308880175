"""Everything an agent can do wrong, each by the name it is started with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

START, END = b"---NANOCLAW_OUTPUT_START---\n", b"---NANOCLAW_OUTPUT_END---\n"
MEGABYTE = 1 << 20


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def block(**fields: object) -> None:
    write(START + json.dumps({"result": None, **fields}).encode() + b"\n" + END)


def answer(text: str) -> None:
    block(status="success", result=text)


def sleep() -> None:
    while True:
        time.sleep(60)


def rubbish() -> None:
    write(b"Segmentation fault? ---NANOCLAW_OUTPUT_START--- {}\n" * 100)


def half_a_marker() -> None:
    write(b"---NANOCLAW_OUTP")


def half_a_block() -> None:
    write(START + b'{"status": "succ')


def half_a_marker_and_hangs() -> None:
    half_a_marker()
    sleep()


def flood_then_an_answer() -> None:
    for _ in range(50):
        write(b"rubbish " * (MEGABYTE // 8 - 1) + b"\n")
    answer("after all that")


def giant_block() -> None:
    write(START + b'{"status": "success", "result": "')
    for _ in range(50):
        write(b"x" * MEGABYTE)
    write(b'"}\n' + END)


def bad_utf8() -> None:
    write(START + b'{"status": "success", "result": "caf\xe9 \xff"}\n' + END)


def nothing() -> None:
    pass


def stubborn() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    answer("I stay")
    sleep()


def forks(seconds: str) -> None:
    for own_session in (True, False):
        subprocess.Popen(["sleep", seconds], start_new_session=own_session)
    answer("I have children")


def forks_in_hiding(seconds: str) -> None:
    """The child drops the mark of its box and keeps our pipes."""
    subprocess.Popen(["sleep", seconds], start_new_session=True, env={})
    answer("I have a secret")


def closes_stdout() -> None:
    os.close(1)
    sleep()


def never_reads() -> None:
    answer("I did not listen")
    sleep()


def never_reads_and_leaves() -> None:
    answer("I did not listen")


def error() -> None:
    block(status="error", error="the model is away " + "!" * MEGABYTE)
    sleep()


def unknown_status() -> None:
    block(status="splendid", result="hello")
    sleep()


def huge_session() -> None:
    block(status="success", result="remember me", newSessionId="s" * 5 * MEGABYTE)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def chatters(count: str) -> None:
    for number in range(int(count)):
        block(status="success", result=f"word {number}", through=1, idle=False)
    block(status="success", result="done", through=1, idle=True)
    sleep()


DEEDS: dict[str, Callable[..., None]] = {
    deed.__name__: deed
    for deed in (
        rubbish,
        half_a_marker,
        half_a_block,
        half_a_marker_and_hangs,
        flood_then_an_answer,
        giant_block,
        bad_utf8,
        nothing,
        stubborn,
        forks,
        forks_in_hiding,
        closes_stdout,
        never_reads,
        never_reads_and_leaves,
        error,
        unknown_status,
        huge_session,
        killed,
        chatters,
    )
}


if __name__ == "__main__":
    name = sys.argv[1]
    if not name.startswith("never_reads"):
        sys.stdin.buffer.read()
    DEEDS[name](*sys.argv[2:])
