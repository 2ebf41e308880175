"""What needs the operator: said once, and over when its cause is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`key` names the cause: the same cause is one notice, however often it is looked at.
    A quiet one is shown and not sent."""

    key: str
    text: str
    raised_at: datetime
    is_quiet: bool = False
    told_at: datetime | None = None
    resolved_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.resolved_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that is so now. One that is not `is_due` raises nothing, but keeps a notice that
    was raised; `since` tells an old cause from a new one of the same name."""

    key: str
    text: str
    is_due: bool = True
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What follows from a look."""

    to_raise: Sequence[Cause]
    to_resolve: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A chat whose last turn failed; `is_stuck` when nothing will try again by itself."""

    chat: ChatId
    folder: str
    why: str
    is_stuck: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """A chat with replies that its network never took; `why` and `last` are of the newest."""

    chat: ChatId
    count: int
    last: datetime
    why: str


def judge(causes: Sequence[Cause], known: Mapping[str, Notice]) -> Verdict:
    """Raise what is new, resolve what is over; whatever is open already stays as it is."""
    standing = {cause.key for cause in causes}
    return Verdict(
        to_raise=[cause for cause in causes if _is_new(cause, known.get(cause.key))],
        to_resolve=[n.key for n in known.values() if n.is_open and n.key not in standing],
    )


def _is_new(cause: Cause, notice: Notice | None) -> bool:
    if not cause.is_due:
        return False
    if notice is None:
        return True
    if notice.resolved_at is None:
        return False
    return cause.since is None or cause.since > notice.resolved_at


def where_to_tell(groups: Sequence[Group], is_healthy: Callable[[ChatId], bool]) -> ChatId | None:
    """Main's chat; while its channel is broken a chat like it, that answers without a trigger."""
    main = [group for group in groups if group.is_main]
    alike = [group for group in groups if not group.is_main and not group.requires_trigger]
    return next((group.chat for group in (*main, *alike) if is_healthy(group.chat)), None)
