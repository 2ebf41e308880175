"""An agent program as the host would run it: its stdin, its blocks, its input folder."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from hallporter_wire.blocks import Block, BlockReader, Found
from hallporter_wire.follow_up import CLOSE, FollowUp, encode_follow_up, file_name

PATIENCE = 5.0  # seconds


def leave(workspace: Path, name: str, data: bytes) -> Path:
    """Put a file into the input folder as a host does: complete from the first moment."""
    folder = workspace / "ipc" / "input"
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{name}.tmp"
    fresh.write_bytes(data)
    return fresh.rename(folder / name)


def leave_follow_up(workspace: Path, number: int, text: str, *, through: int | None = None) -> Path:
    data = encode_follow_up(FollowUp(text=text, content=text, through=through))
    return leave(workspace, file_name(number), data)


class Program:
    def __init__(self, argv: Sequence[str], *, workspace: Path) -> None:
        self._workspace = workspace
        self.input = workspace / "ipc" / "input"
        self.input.mkdir(parents=True, exist_ok=True)
        (workspace / "group").mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "HALLPORTER_WORKSPACE": str(workspace)},
        )
        self._reader = BlockReader()
        self._found: list[Found] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def begin(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.close()
        self._process.stdin = None  # communicate() would write to it again

    def tell(self, number: int, text: str, *, through: int | None = None) -> Path:
        return leave_follow_up(self._workspace, number, text, through=through)

    def put(self, name: str, data: bytes) -> Path:
        return leave(self._workspace, name, data)

    def close(self) -> None:
        (self.input / CLOSE).touch()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def stop_reading(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()

    def block(self) -> Block:
        """The next block, within the time a test may take."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        end = time.monotonic() + PATIENCE
        while not self._found:
            ready, _, _ = select.select([output], [], [], max(0.0, end - time.monotonic()))
            assert ready, "no block came in time"
            data = os.read(output, 65536)
            assert data, f"the program ended without a block: {self._process.communicate()[1]!r}"
            self._found += self._reader.feed(data)
        block = self._found.pop(0)
        assert isinstance(block, Block), block
        return block

    def end(self) -> tuple[int, list[Found], str]:
        """The exit code, what else it said, and its stderr."""
        if self._process.stdout is not None and self._process.stdout.closed:
            self._process.stdout = None
        out, err = self._process.communicate(timeout=PATIENCE)
        found = [*self._found, *self._reader.feed(out or b""), *self._reader.close()]
        return self._process.returncode, found, err.decode()
