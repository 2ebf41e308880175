"""An agent that sends a file before it answers, and tries for some that are not its own.

Stdlib only and written by hand against docs/protocol.md: it is a foreign program to the host.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time

WORKSPACE = pathlib.Path(os.environ.get("HALLPORTER_WORKSPACE", "/workspace"))
IPC = WORKSPACE / "ipc"
PATIENCE = 10.0  # seconds


def ask(number: int, file: str) -> str:
    name = f"{number:03d}.json"
    aside = IPC / "messages" / f"{name}.tmp"
    aside.write_text(json.dumps({"type": "message", "text": f"file {number}", "file": file}))
    aside.rename(IPC / "messages" / name)
    end = time.monotonic() + PATIENCE
    while not (IPC / "results" / name).exists():
        if time.monotonic() > end:
            return "no answer"
        time.sleep(0.01)
    told = json.loads((IPC / "results" / name).read_text())
    return "sent" if told["ok"] else told["error"]


def main() -> None:
    start = json.load(sys.stdin)
    report = pathlib.Path("out", "Report \u05d0.html")
    report.parent.mkdir(exist_ok=True)
    report.write_text("<script>alert(1)</script>")
    pathlib.Path("passwd").unlink(missing_ok=True)
    pathlib.Path("passwd").symlink_to("/etc/passwd")
    told = [ask(1, str(report)), ask(2, "passwd"), ask(3, "../main/CLAUDE.md"), ask(4, "none")]
    report.write_text("changed afterwards")
    block = {"status": "success", "result": json.dumps(told), "idle": True}
    block["through"] = start["through"]
    sys.stdout.write(
        f"---NANOCLAW_OUTPUT_START---\n{json.dumps(block)}\n---NANOCLAW_OUTPUT_END---\n"
    )
    sys.stdout.flush()


main()
