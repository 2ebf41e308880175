"""Slash lines: what a person says to the host itself, not to the agent."""

from __future__ import annotations

from enum import StrEnum

from hallporter.domain.trigger import starts_with_word


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


def parse_slash(text: str, trigger: str) -> Slash | None:
    """The slash word, also behind the trigger word; anything unknown is text for the agent."""
    line = text.strip()
    if trigger.startswith("@") and starts_with_word(line, trigger):
        line = line[len(trigger) :].strip()
    if not line.startswith("/") or "\n" in line:
        return None
    word, _, rest = line[1:].partition(" ")
    name, _, _bot = word.partition("@")  # networks append the bot's name: /stop@andy
    if rest.strip():
        return None
    try:
        return Slash(name.casefold())
    except ValueError:
        return None
