"""A foreign program as it should be: it says nothing of `through`, and stays for more."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

START, END = "---NANOCLAW_OUTPUT_START---", "---NANOCLAW_OUTPUT_END---"


def say(text: str) -> None:
    block = json.dumps({"status": "success", "result": text})
    sys.stdout.write(f"{START}\n{block}\n{END}\n")
    sys.stdout.flush()


def main() -> None:
    inbox = Path(os.environ["HALLPORTER_WORKSPACE"], "ipc", "input")
    prompt = json.load(sys.stdin)["prompt"]
    heard = re.findall(r"<message [^>]*>(.*?)</message>", prompt, re.DOTALL)
    say(f"heard: {', '.join(heard)}")
    while not (inbox / "_close").exists():
        for file in sorted(inbox.glob("*.json")):
            content = json.loads(file.read_bytes())["content"]
            file.unlink()
            say(f"also heard: {content}")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
