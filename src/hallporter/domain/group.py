"""A chat with a folder, a trigger and an agent of its own, and whose words count in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from hallporter.domain.ids import ChatId, Folder

MAX_NAME = 200  # characters of a group's name
MAX_ASSISTANT_NAME = 64  # characters
MAX_SENDERS = 1000  # on one list
MAX_SENDER = 300  # characters of a sender's id


class Others(StrEnum):
    """What happens to the words of people who are not on a group's list."""

    IGNORE = "ignore"  # not kept
    STORE = "store"  # kept, and go along with the words of those who are


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderRule:
    """Whose words count in a group; an empty list means nobody's."""

    allow: frozenset[str]
    others: Others = Others.IGNORE

    def allows(self, sender: str) -> bool:
        """By who speaks, exactly; how they are shown means nothing."""
        return sender in self.allow


@dataclass(frozen=True, slots=True)
class Everyone:
    """In the place of a rule: all in the chat may talk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderChange:
    """Only what is given changes; a list replaces the list."""

    allow: frozenset[str] | None = None
    others: Others | None = None

    def of(self, rule: SenderRule | None) -> SenderRule:
        """What a rule becomes. Raises `InvalidRequestError` when it still would have no list."""
        if rule is None and self.allow is None:
            message = (
                "everyone may talk here, so there are no others:"
                " say as well who is allowed (an empty list means nobody)"
            )
            raise InvalidRequestError(message, field="senders", value=self.others)
        before = rule or SenderRule(allow=frozenset())
        return SenderRule(
            allow=before.allow if self.allow is None else check_senders(self.allow),
            others=self.others or before.others,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`agent` holds only what was set for this group; the rest comes from the settings. Without a
    sender rule everyone in the chat may talk; without an own name the assistant has the house's."""

    chat: ChatId
    name: str
    folder: Folder
    trigger: str
    requires_trigger: bool
    is_main: bool
    added_at: datetime
    agent: Mapping[str, object] = field(default_factory=dict)
    assistant_name: str | None = None
    senders: SenderRule | None = None


def check_name(name: str) -> str:
    """A group's name in one line, or an error that says what is allowed."""
    trimmed = " ".join(name.split())
    if not trimmed or len(trimmed) > MAX_NAME:
        message = f"a group's name has 1 to {MAX_NAME} characters"
        raise InvalidRequestError(message, field="name", value=name[:80])
    return trimmed


def check_assistant_name(name: str) -> str:
    """The trimmed name, or an error that says what is allowed."""
    trimmed = name.strip()
    if not 0 < len(trimmed) <= MAX_ASSISTANT_NAME or not trimmed.isprintable():
        message = f"an assistant's name is one line of 1 to {MAX_ASSISTANT_NAME} characters"
        raise InvalidRequestError(message, field="assistant_name", value=name[:80])
    return trimmed


def check_senders(names: Collection[str]) -> frozenset[str]:
    """A list of senders, or an error that says what is allowed."""
    if len(names) > MAX_SENDERS:
        message = f"a list of senders has at most {MAX_SENDERS}, this one {len(names)}"
        raise InvalidRequestError(message, field="senders", value=len(names))
    for name in names:
        if not is_sender(name):
            message = f"a sender's id is one line of 1 to {MAX_SENDER} characters"
            raise InvalidRequestError(message, field="senders", value=name[:80])
    return frozenset(names)


def is_sender(name: str) -> bool:
    """Whether someone can be known by this."""
    return 0 < len(name) <= MAX_SENDER and name.isprintable()
