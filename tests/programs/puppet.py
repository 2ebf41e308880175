"""An agent on strings: it does what its test writes into its folder, one order after another."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

INBOX = Path(os.environ["HALLPORTER_WORKSPACE"], "ipc", "input")
ORDERS = Path("orders")  # in the group's folder, where an agent works
DOING = ORDERS / "doing"


def say(text: str | None, **more: object) -> None:
    block = json.dumps({"status": "success", "result": text, **more})
    write("---NANOCLAW_OUTPUT_START---", block, "---NANOCLAW_OUTPUT_END---")


def say_plainly(text: str) -> None:
    write("OUTPUT_START_MARKER", text, "OUTPUT_END_MARKER")


def write(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def take() -> str:
    """The oldest follow-up's words, once there is one."""
    while not (files := sorted(INBOX.glob("*.json"))):
        time.sleep(0.01)
    content: str = json.loads(files[0].read_bytes())["content"]
    files[0].unlink()
    return content


def leave(code: int = 0) -> NoReturn:
    DOING.unlink()
    os._exit(code)


def main() -> None:
    start = json.load(sys.stdin)
    Path("started.json").write_text(json.dumps(start))
    ORDERS.mkdir(exist_ok=True)
    while True:
        orders = sorted(ORDERS.glob("*.order"))
        if not orders:
            time.sleep(0.01)
            continue
        orders[0].replace(DOING)
        exec(DOING.read_text(), {**globals(), "start": start})
        DOING.unlink()


if __name__ == "__main__":
    main()
