"""A backlog as the agent reads it: 002's XML for `prompt`, 000's strings for `messages[]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hallporter_wire.errors import WireError
from hallporter_wire.fields import instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

# Characters XML 1.0 has no way to write, not even escaped: one of them makes a document unreadable.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END = re.compile("\r\n?")
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
# A reader turns bare white space in an attribute into spaces, so it is written as references.
_ATTRIBUTE = _TEXT | str.maketrans({"\t": "&#9;", "\n": "&#10;"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """One message as the agent is to read it."""

    id: str
    at: datetime
    sender: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the agent should know beside the words; `attempt` counts from 1 (R16), `sent` is what
    earlier attempts have said by `send_message` (R13)."""

    now: datetime
    timezone: str
    attempt: int
    omitted: int
    sent: Sequence[str] = ()


def format_prompt(utterances: Sequence[Utterance], context: Context) -> str:
    """The context line, then the messages, then nothing."""
    lines = [
        f'  <message sender="{_attribute(said.sender)}" time="{instant(said.at)}">'
        f"{_text(said.text)}</message>"
        for said in utterances
    ]
    return "\n".join([_context_line(context), "<messages>", *lines, "</messages>"])


def format_task(text: str, context: Context) -> str:
    """The context line, then the task's own text as it was written."""
    return f"{_context_line(context)}\n{text}"


def format_messages(utterances: Sequence[Utterance]) -> list[str]:
    """The same messages as the entries of `messages[]`."""
    return [
        f'<message id="{_attribute(said.id)}" timestamp="{instant(said.at)}"'
        f' sender="{_attribute(said.sender)}" role="user">\n{_text(said.text)}\n</message>'
        for said in utterances
    ]


def _context_line(context: Context) -> str:
    try:
        zone = ZoneInfo(context.timezone)
    except (OSError, ValueError, KeyError) as error:
        raise WireError(f"{context.timezone!r} is no time zone", field="timezone") from error
    now = context.now.astimezone(zone).isoformat(timespec="seconds")
    start = (
        f'<context now="{now}" timezone="{_attribute(context.timezone)}"'
        f' attempt="{context.attempt}" omitted="{context.omitted}"'
    )
    # Escaped like attributes, so that it stays one line whatever was sent.
    sent = "".join(f"<sent>{_attribute(text)}</sent>" for text in context.sent)
    return f"{start}>{sent}</context>" if sent else f"{start}/>"


def _text(raw: str) -> str:
    return _writable(raw).translate(_TEXT)


def _attribute(raw: str) -> str:
    return _writable(raw).translate(_ATTRIBUTE)


def _writable(raw: str) -> str:
    return _FORBIDDEN.sub("\ufffd", _LINE_END.sub("\n", raw))
