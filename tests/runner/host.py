"""A host that answers requests: it takes each file out of the boxes and writes its result."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

Request = Mapping[str, Any]
Answer = Callable[[Request], Mapping[str, object]]
_LOOK = 0.002  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    box: str
    name: str
    request: Request


def carry_out(_: Request) -> Mapping[str, object]:
    return {"ok": True}


class Host:
    """Runs in a thread, since what it answers blocks while it waits."""

    def __init__(self, workspace: Path, answer: Answer = carry_out) -> None:
        self.ipc = workspace / "ipc"
        for folder in ("messages", "tasks", "results"):
            (self.ipc / folder).mkdir(parents=True, exist_ok=True)
        self.answer = answer
        self.posted: list[Posted] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def write(self, name: str, snapshot: object) -> None:
        (self.ipc / name).write_text(json.dumps(snapshot), encoding="utf-8")

    @property
    def requests(self) -> list[Request]:
        return [each.request for each in self.posted]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._is_over.wait(_LOOK):
            for box in ("messages", "tasks"):
                for file in sorted((self.ipc / box).glob("*.json")):
                    self._take(box, file)

    def _take(self, box: str, file: Path) -> None:
        request = json.loads(file.read_bytes())
        file.unlink()
        self.posted.append(Posted(box=box, name=file.name, request=request))
        result = self.ipc / "results" / file.name
        fresh = result.with_suffix(".tmp")
        fresh.write_text(json.dumps(self.answer(request)), encoding="utf-8")
        fresh.rename(result)
