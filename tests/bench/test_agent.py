from __future__ import annotations

import json
import subprocess
from pathlib import Path

from bench.host import AGENT
from hallporter_wire.blocks import Block, BlockReader


def prepare(workspace: Path) -> Path:
    (workspace / "group").mkdir()
    tray = workspace / "ipc" / "input"
    tray.mkdir(parents=True)
    return tray


def run(workspace: Path, prompt: str) -> list[Block]:
    done = subprocess.run(
        AGENT,
        input=json.dumps({"prompt": prompt, "through": 3}).encode(),
        env={"HALLPORTER_WORKSPACE": str(workspace)},
        capture_output=True,
        timeout=5,
        check=True,
    )
    blocks = BlockReader().feed(done.stdout)
    return [block for block in blocks if isinstance(block, Block)]


def test_it_answers_once_and_says_when_it_saw_and_wrote(tmp_path: Path) -> None:
    prepare(tmp_path)
    (block,) = run(tmp_path, "once")
    assert block.through == 3
    assert block.result is not None
    stamps = json.loads(block.result)
    assert stamps["from"] == "stdin"
    assert 0 < stamps["seen"] <= stamps["block"]


def test_it_takes_files_in_order_until_it_is_asked_to_close(tmp_path: Path) -> None:
    tray = prepare(tmp_path)
    for number, words in ((4, "hold"), (5, "more")):
        file = tray / f"{number:012d}.json"
        file.write_text(json.dumps({"content": words, "through": number}))
    (tray / "_close").touch()
    first, held, last = run(tmp_path, "stay")
    assert [first.through, held.through, last.through] == [3, 4, 5]
    assert [first.idle, held.idle, last.idle] == [True, False, True]
    assert [file.name for file in tray.iterdir()] == ["_close"]
