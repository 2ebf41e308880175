"""What an agent program says: blocks between marker lines on its stdout."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hallporter_wire.errors import WireError
from hallporter_wire.fields import Fields, clean, dump, encode, is_sequence_number, present

PLAIN_START, PLAIN_END = b"OUTPUT_START_MARKER", b"OUTPUT_END_MARKER"  # 000: text between them
JSON_START, JSON_END = b"---NANOCLAW_OUTPUT_START---", b"---NANOCLAW_OUTPUT_END---"  # 001, 002

MAX_BLOCK = 32 * 1024 * 1024  # bytes
_MAX_MARKER_LINE = 1024  # bytes; a longer line is text, however much white space it has
_EXCERPT = 200  # characters

_MARKER_LINE = re.compile(
    rb"^[ \t\r]*+(%b)[ \t\r]*+$" % b"|".join((PLAIN_START, PLAIN_END, JSON_START, JSON_END)),
    re.MULTILINE,
)
_END_OF = {PLAIN_START: PLAIN_END, JSON_START: JSON_END}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One result; `through` and `idle` are None when the program does not say them (R3)."""

    status: Literal["success", "error"]
    result: str | None
    session_id: str | None = None
    error: str | None = None
    through: int | None = None
    idle: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """Something between markers that is no block."""

    reason: str
    excerpt: str


Found: TypeAlias = Block | Malformed


def encode_block(block: Block) -> bytes:
    """The block in the second dialect, each marker on a line of its own."""
    optional: dict[str, object] = {
        "newSessionId": block.session_id,
        "error": block.error,
        "through": block.through,
        "idle": block.idle,
    }
    body = encode({"status": block.status, "result": block.result, **present(optional)})
    return b"%b\n%b\n%b\n" % (JSON_START, body, JSON_END)


@dataclass(frozen=True, slots=True)
class _Outside:
    """Between blocks: whatever comes is the program's own chatter."""


@dataclass(frozen=True, slots=True)
class _Open:
    """Inside a block."""

    start: bytes
    body: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class _Skipping:
    """Inside a block that grew too large and has been reported."""

    start: bytes


class BlockReader:
    """Finds blocks in a stream, however it is cut into pieces.

    Any start marker begins a block, also inside another one: a program that died half-way through a
    block must not swallow what the next one says.
    """

    def __init__(self, *, max_block: int = MAX_BLOCK) -> None:
        self._max_block = max_block
        self._state: _Outside | _Open | _Skipping = _Outside()
        self._pending = b""  # the start of a line that may yet become a marker
        self._in_long_line = False

    def feed(self, data: bytes) -> list[Found]:
        """The blocks that end within this piece."""
        found: list[Found] = []
        data = self._pending + data
        start = 0
        if self._in_long_line:
            start = data.find(b"\n") + 1
            if start == 0:
                self._pending = b""
                return self._keep(data)
            self._in_long_line = False
            found += self._keep(data[:start])
        complete = data.rfind(b"\n") + 1  # everything before is whole lines
        for line in _MARKER_LINE.finditer(data, start, complete):
            if line.end() - line.start() > _MAX_MARKER_LINE or not self._acts(line.group(1)):
                continue
            found += self._keep(data[start : line.start()])
            found += self._mark(line.group(1))
            start = line.end() + 1
        if start < complete:
            found += self._keep(data[start:complete])
        self._pending = data[complete:]
        if len(self._pending) > _MAX_MARKER_LINE:
            found += self._keep(self._pending)
            self._pending, self._in_long_line = b"", True
        return found

    def close(self) -> list[Found]:
        """What the end of the stream ends: a last line without a line feed, and half a block."""
        found = self.feed(b"\n")
        if isinstance(self._state, _Open):
            found.append(_malformed("the output ended inside a block", self._state.body))
        self._state = _Outside()
        return found

    def _keep(self, text: bytes) -> list[Found]:
        if not isinstance(self._state, _Open):
            return []
        start, body = self._state.start, self._state.body
        room = self._max_block - len(body)
        body += text[:room]
        if len(text) <= room:
            return []
        self._state = _Skipping(start)
        return [_malformed(f"a block is larger than {self._max_block} bytes", body)]

    def _acts(self, marker: bytes) -> bool:
        """Whether it means something here; an end marker without its start is mere text."""
        if marker in _END_OF:
            return True
        return not isinstance(self._state, _Outside) and _END_OF[self._state.start] == marker

    def _mark(self, marker: bytes) -> list[Found]:
        before = self._state
        self._state = _Open(marker) if marker in _END_OF else _Outside()
        if not isinstance(before, _Open):
            return []
        if marker in _END_OF:
            return [_malformed("a block began inside another", before.body)]
        return [_decode(before)]


def _decode(block: _Open) -> Found:
    if block.start == PLAIN_START:
        text = clean(block.body.decode("utf-8", "replace")).strip("\r\n")
        return Block(status="success", result=text if text.strip() else None)
    try:
        return _decode_json(block.body)
    except WireError as error:
        return _malformed(str(error), block.body)


def _decode_json(body: bytearray) -> Block:
    # Replaced before parsing: one bad byte in a text must not cost the whole answer.
    fields = Fields(body.decode("utf-8", "replace").encode())
    status = fields.any("status")
    if status != "success" and status != "error":  # noqa: PLR1714
        raise WireError("must be 'success' or 'error'", field="status")
    session_id, through, idle = (fields.any(name) for name in ("newSessionId", "through", "idle"))
    return Block(
        status=status,
        result=_words(fields.any("result")),
        session_id=clean(session_id) if isinstance(session_id, str) and session_id else None,
        error=_words(fields.any("error")),
        through=through if is_sequence_number(through) else None,
        idle=idle if isinstance(idle, bool) else None,
    )


def _words(value: object) -> str | None:
    if value is None:
        return None
    return clean(value if isinstance(value, str) else dump(value))


def _malformed(reason: str, body: bytearray) -> Malformed:
    # A character takes at most four bytes; the whole of a large body need not be decoded.
    excerpt = bytes(body[: 4 * _EXCERPT]).decode("utf-8", "replace").strip()
    return Malformed(reason=reason, excerpt=clean(excerpt[:_EXCERPT]))
