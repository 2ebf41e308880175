"""Cutting a text to a network's limit: at a paragraph, a line, a word, and only then anywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

MIN_LIMIT = 20  # characters: below it the marks of a code block would fill a part

_OPENING = re.compile(r"[ \t]*(?P<marker>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>.*)")


@dataclass(frozen=True, slots=True)
class _Fence:
    """An open code block: `opening` begins it again in the next part."""

    marker: str
    opening: str

    def is_closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.marker) and set(bare) == {self.marker[0]}


def split(text: str, limit: int) -> tuple[str, ...]:
    """Parts of at most `limit` characters, in order. Only white space at a cut is left out; a code
    block that must be broken is closed and opened again, so that each part stands alone."""
    if limit < MIN_LIMIT:
        raise ValueError(f"a limit of {limit} leaves no room: {MIN_LIMIT} is the least")
    parts: list[str] = []
    rest = text
    fence: _Fence | None = None
    while True:
        head = f"{fence.opening}\n" if fence else ""
        if len(head) + len(rest) <= limit:
            break
        piece, after = _take(rest, fence, limit=limit, room=limit - len(head))
        if after is None:
            part = head + piece.rstrip()
            rest = rest[len(piece) :]
            rest = rest.lstrip("\n") if rest.startswith("\n") else rest.lstrip(" \t")
        else:
            part = f"{head}{piece}\n{after.marker}"
            rest = rest[len(piece) :].removeprefix("\n")
            first, _, beyond = rest.partition("\n")
            if after.is_closed_by(first):  # it was closed just now
                rest, after = beyond, None
        if part.strip():
            parts.append(part)
        fence = after
    if rest.strip() or not parts:
        parts.append(head + rest)
    return tuple(parts)


def _take(text: str, fence: _Fence | None, *, limit: int, room: int) -> tuple[str, _Fence | None]:
    """The next piece of `text`, and the code block that is open at its end."""
    cut = _cut(text, room, in_code=fence is not None)
    after, _ = _follow(text[:cut], fence, limit)
    if after is None:
        return text[:cut], None
    cut = _cut(text, room - len(after.marker) - 1, in_code=True)  # room for the closing line
    after, opened_at = _follow(text[:cut], fence, limit)
    if after is not None and opened_at:  # it began in this piece, behind other text
        is_bare = "\n" not in text[opened_at:cut]
        if is_bare or _length(text, opened_at, after) <= limit:
            return text[:opened_at], None
    return text[:cut], after


def _cut(text: str, room: int, *, in_code: bool) -> int:
    """Where to cut so that at most `room` characters stand before it."""
    if not in_code:
        for separator in ("\n\n", "\n"):
            if (at := text.rfind(separator, 1, room + len(separator))) > 0:
                return at
        spaces = [text.rfind(space, 1, room + 1) for space in (" ", "\t")]
        return max(spaces) if max(spaces) > 0 else room
    at = text.rfind("\n", 1, room + 1)
    return at if at > 0 else room


def _follow(text: str, fence: _Fence | None, limit: int) -> tuple[_Fence | None, int]:
    """The code block open at the end of `text`, and where its first line stands."""
    opened_at = 0
    at = 0
    for line in text.split("\n"):
        if fence is not None:
            if fence.is_closed_by(line):
                fence = None
        elif (found := _opening(line, limit)) is not None:
            fence, opened_at = found, at
        at += len(line) + 1
    return fence, opened_at


def _opening(line: str, limit: int) -> _Fence | None:
    match = _OPENING.fullmatch(line.rstrip())
    if match is None or len(match["marker"]) > limit // 4 - 1:
        return None  # markers that leave no room for what they enclose are plain text
    opening = match["marker"] + match["info"]
    return _Fence(match["marker"], opening if len(opening) <= limit // 2 else match["marker"])


def _length(text: str, start: int, fence: _Fence) -> int:
    """Of the code block that begins at `start`, its closing line included."""
    at = text.find("\n", start) + 1
    while 0 < at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if fence.is_closed_by(text[at:end]):
            return end - start
        at = end + 1
    return len(text) - start
