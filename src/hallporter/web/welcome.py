"""What a first visitor is offered: words that wake the chat they are said in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.trigger import is_trigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.group import Group


@dataclass(frozen=True, slots=True)
class Try:
    """Something to say, and what comes of it."""

    say: str
    gives: str


_TRIES = (
    Try("where are you?", "It tells what it sees of its sandbox."),
    Try("show formatting", "A long answer with a table and code."),
    Try("work slowly for 20 seconds", "Say more meanwhile, or stop it."),
)


def opening(group: Group, assistant: str) -> str | None:
    """What a message begins with to wake this chat: nothing, a word, or None where only the one
    who wrote the pattern knows."""
    if group.is_main or not group.requires_trigger:
        return ""
    words = (group.trigger, f"@{assistant}", assistant)
    return next((word for word in words if _wakes(group, word)), None)


def tries(group: Group, assistant: str) -> Sequence[Try]:
    """The three things to try here; none where nobody knows how to begin."""
    begin = opening(group, assistant)
    if begin is None:
        return ()
    return [Try(f"{begin} {one.say}".strip(), one.gives) for one in _TRIES]


def _wakes(group: Group, word: str) -> bool:
    return all(is_trigger(group.trigger, f"{word} {one.say}") for one in _TRIES)
