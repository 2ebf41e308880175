"""What stands behind the pages: the use cases they call, handed in by wiring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hallporter.domain.group import Group
    from hallporter.domain.ids import NewId
    from hallporter.domain.notice import Notice
    from hallporter.ports import Channel, Clock, Feed
    from hallporter.switchboard.enclosures import Enclosures
    from hallporter.switchboard.groups import Groups
    from hallporter.switchboard.intake import Intake
    from hallporter.switchboard.sessions import Sessions
    from hallporter.switchboard.story import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """Who answers in a chat: the kind of agent and the box it runs in, or why there is none."""

    kind: str
    sandbox: str
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lobby:
    """`web` is the channel whose chats the pages show; `notices` is what needs the operator now."""

    intake: Intake
    story: Story
    enclosures: Enclosures
    groups: Groups
    sessions: Sessions
    feed: Feed
    clock: Clock
    new_id: NewId
    web: Channel
    notices: Callable[[], Awaitable[Sequence[Notice]]]
    answerer_of: Callable[[Group], Answerer]
    assistant_name: str
    version: str
