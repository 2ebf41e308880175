"""Slash lines: what a person says to the host itself, not to the agent."""

from __future__ import annotations

from enum import StrEnum

from hallporter.domain.trigger import after_word


class Slash(StrEnum):
    """The words the host understands, with what `/help` says of them."""

    HELP = "help"
    STATUS = "status"
    STOP = "stop"
    NEW = "new"
    WHOAMI = "whoami"


SAYS = {
    Slash.HELP: "what I understand",
    Slash.STATUS: "who answers here and what is going on",
    Slash.STOP: "stop the answer that is being made",
    Slash.NEW: "begin a fresh session: the agent forgets what was said before",
    Slash.WHOAMI: "how I know you",
}


_MAX_LINE = 300  # characters: a trigger word and a slash word


def parse_slash(text: str, trigger: str) -> Slash | None:
    """The slash word, also behind the trigger word; anything unknown is text for the agent."""
    line = text.strip()
    if len(line) > _MAX_LINE:
        return None
    if trigger.startswith("@") and (rest := after_word(line, trigger)) is not None:
        line = rest.strip()
    if not line.startswith("/") or "\n" in line:
        return None
    word, _, more = line[1:].partition(" ")
    name, _, _bot = word.partition("@")  # networks append the bot's name: /stop@andy
    if more.strip():
        return None
    try:
        return Slash(name.casefold())
    except ValueError:
        return None
