"""An agent that answers each batch by naming the tokens in it; stays for follow-ups.

Stdlib only and written by hand against docs/protocol.md: it is a foreign program to the host.
Each answer comes in two blocks, so that a crash can fall between them.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import time

WORKSPACE = pathlib.Path(os.environ.get("HALLPORTER_WORKSPACE", "/workspace"))
TOKEN = re.compile(r"tok-[0-9a-f]+-\d+")
WORK = 0.08  # seconds at most
SLOW_WORK = 0.5  # seconds, when asked to work slowly: follow-ups must have time to come in


def emit(result: str, through: int, *, idle: bool) -> None:
    block = {"status": "success", "result": result, "through": through, "idle": idle}
    sys.stdout.write(
        f"---NANOCLAW_OUTPUT_START---\n{json.dumps(block)}\n---NANOCLAW_OUTPUT_END---\n"
    )
    sys.stdout.flush()


def answer(text: str, through: int) -> None:
    work = SLOW_WORK if "slowly" in text else WORK * (through % 4) / 3
    time.sleep(work)
    tokens = TOKEN.findall(text)
    emit(" ".join(["answered", *tokens]), through, idle=False)
    time.sleep(work)
    emit("and that is all", through, idle=True)


def main() -> None:
    start = json.load(sys.stdin)
    answer(start["prompt"], start["through"])
    tray = WORKSPACE / "ipc" / "input"
    while True:
        for file in sorted(tray.glob("*.json")):
            follow_up = json.loads(file.read_text())
            file.unlink()
            answer(follow_up["text"], follow_up["through"])
        if (tray / "_close").exists():
            return
        time.sleep(0.005)


main()
