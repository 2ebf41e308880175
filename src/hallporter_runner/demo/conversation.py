"""What was said to the demo agent, and which of it asks for an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter_wire.reading import Heard, read_prompt

if TYPE_CHECKING:
    from datetime import datetime

_MENTION = re.compile(r"\s*@\S+\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """All that was heard at once: the request, and the rest."""

    heard: tuple[Heard, ...]
    request: Heard
    others: tuple[Heard, ...]
    now: datetime | None
    timezone: str
    attempt: int


def listen(prompts: tuple[str, ...]) -> Talk:
    """The last message that begins with a mention is the request, else the last of all."""
    readings = [read_prompt(prompt) for prompt in prompts]
    heard = tuple(said for reading in readings for said in reading.heard)
    others = list(heard) or [Heard(sender="", text="")]
    mentioned = [index for index, said in enumerate(others) if _MENTION.match(said.text)]
    chosen = others.pop(mentioned[-1] if mentioned else -1)
    latest = readings[-1]
    return Talk(
        heard=heard,
        request=Heard(sender=chosen.sender, text=_without_mention(chosen.text)),
        others=tuple(others),
        now=latest.now,
        timezone=latest.timezone,
        attempt=latest.attempt,
    )


def _without_mention(text: str) -> str:
    mention = _MENTION.match(text)
    return text[mention.end() :] if mention else text
