"""The host's log as entries: read across the files that were put aside, sifted, followed."""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    Pause = Callable[[], None]

Entry = dict[str, Any]

LEVELS = ("debug", "info", "warning", "error", "critical")

# Shown at their own place in a line, or as its tail.
_FIRST = ("timestamp", "level", "event", "exception")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries a reader asks for."""

    chat: str | None = None
    turn: str | None = None
    level: str = LEVELS[0]
    since: datetime | None = None

    def takes(self, entry: Entry) -> bool:
        return (
            (self.chat is None or entry.get("chat") == self.chat)
            and (self.turn is None or entry.get("turn") == self.turn)
            and _rank(entry) >= LEVELS.index(self.level)
            and (self.since is None or _is_since(entry, self.since))
        )


def read(files: Iterable[Path], wanted: Wanted, newest: int) -> list[Entry]:
    """The newest entries that are wanted, in order; the files come oldest first."""
    kept: deque[Entry] = deque(maxlen=newest)
    for file in files:
        try:
            with file.open("rb") as lines:
                kept.extend(entry for entry in map(_entry, lines) if wanted.takes(entry))
        except FileNotFoundError:
            continue  # turned over while we looked
    return list(kept)


def follow(
    files: Callable[[], Sequence[Path]], wanted: Wanted, newest: int, pause: Pause
) -> Generator[Entry]:
    """The newest, then what is written from now on, for ever: no gap, and nothing twice, however
    often files are put aside meanwhile. `files` gives them oldest first."""
    while not files():
        pause()
    with ExitStack() as opened:
        file: BinaryIO = opened.enter_context(files()[-1].open("rb"))
        before = read((one for one in files() if not _leads_to(one, file)), wanted, newest)
        yield from deque([*before, *_sifted(file, wanted)], maxlen=newest)
        while True:
            following = _following(file, files)
            yield from _sifted(file, wanted)  # after the look: it was put aside complete
            if following is None:
                pause()
            else:
                file.close()
                file = opened.enter_context(following)


def line_of(entry: Entry) -> str:
    """An entry as people read it; no value can make a line or a colour of its own."""
    at = str(entry.get("timestamp", ""))[:19].replace("T", " ")
    fields = [
        f"{_plain(name)}={_plain(value)}" for name, value in entry.items() if name not in _FIRST
    ]
    head = f"{_plain(at, is_prose=True) if at else '':19}  {_plain(entry.get('level', '')):7}"
    told = "  ".join([head, _plain(entry.get("event", ""), is_prose=True), " ".join(fields)])
    return "\n".join([told.rstrip(), *_trace(entry.get("exception"))])


def _entry(line: bytes) -> Entry:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    return {"event": line.decode(errors="replace").rstrip("\n"), "level": "info"}


def _rank(entry: Entry) -> int:
    level = entry.get("level")
    return LEVELS.index(level) if level in LEVELS else LEVELS.index("info")


def _is_since(entry: Entry, since: datetime) -> bool:
    from datetime import datetime

    try:
        return datetime.fromisoformat(str(entry["timestamp"])) >= since
    except (KeyError, ValueError, TypeError):
        return False


def _following(file: BinaryIO, files: Callable[[], Sequence[Path]]) -> BinaryIO | None:
    """The one that was begun after this one, if any; the oldest, when this one is gone."""
    while True:
        present = files()
        place = next((n for n, one in enumerate(present) if _leads_to(one, file)), -1)
        if place + 1 == len(present):
            return None
        try:
            found = present[place + 1].open("rb")
        except FileNotFoundError:
            continue
        # Put aside in between, a name leads to another: then look again.
        if place < 0 or _leads_to(present[place], file):
            return found
        found.close()


def _sifted(file: BinaryIO, wanted: Wanted) -> Iterator[Entry]:
    return (entry for entry in map(_entry, _whole_lines(file)) if wanted.takes(entry))


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Up to the last that is complete: the rest is still being written."""
    while (line := file.readline()).endswith(b"\n"):
        yield line
    if line:
        file.seek(-len(line), os.SEEK_CUR)


def _leads_to(path: Path, file: BinaryIO) -> bool:
    """Whether the path is that of the file that is open."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _plain(value: object, *, is_prose: bool = False) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text.isprintable() and text and (is_prose or not set(text) & set(' "')):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable()) if text else '""'


def _trace(exception: object) -> list[str]:
    """The chain of a traceback, the innermost place of each link."""
    if not isinstance(exception, list):
        return []
    lines = []
    for link in exception:
        frames = link.get("frames") or [{}]
        place = f"{frames[-1].get('filename', '?')}:{frames[-1].get('lineno', '?')}"
        what = f"{link.get('exc_type')}: {link.get('exc_value')}"
        lines.append(f"    {_plain(what, is_prose=True)}  at {_plain(place)}")
    return lines
