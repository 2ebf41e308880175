"""A prompt read back: who said what, for programs that understand text without a model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree as ET

_MARKED_UP = "<messages>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One message; the sender is empty when the prompt names none, as in a task."""

    sender: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a prompt says; without a context line `now` is None and it is the first attempt."""

    heard: tuple[Heard, ...]
    now: datetime | None = None
    timezone: str = ""
    attempt: int = 1
    sent: tuple[str, ...] = ()  # by earlier attempts


def read_prompt(prompt: str) -> Reading:
    """The messages of a prompt in either dialect; anything else is one message by nobody."""
    first, _, rest = prompt.partition("\n")
    context = _element(first)
    if context is None or context.tag != "context":
        return Reading(heard=_heard(prompt))
    attempt = context.get("attempt", "")
    return Reading(
        heard=_heard(rest),
        now=_moment(context.get("now", "")),
        timezone=context.get("timezone", ""),
        attempt=int(attempt) if attempt.isdecimal() else 1,
        sent=tuple("".join(sent.itertext()) for sent in context.iter("sent")),
    )


def _heard(text: str) -> tuple[Heard, ...]:
    messages = _element(text) if text.lstrip().startswith(_MARKED_UP) else None
    if messages is None:
        return (Heard(sender="", text=text.strip()),)
    return tuple(
        Heard(sender=message.get("sender", ""), text="".join(message.itertext()).strip())
        for message in messages.iter("message")
    )


def _element(text: str) -> ET.Element | None:
    # Inside an element no document type can be declared, so no entity can be defined either.
    try:
        wrapper = ET.fromstring(f"<prompt>{text}</prompt>")  # noqa: S314
    except (ET.ParseError, UnicodeEncodeError):
        return None
    if len(wrapper) != 1:
        return None
    around = (wrapper.text or "") + (wrapper[0].tail or "")
    return None if around.strip() else wrapper[0]


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
