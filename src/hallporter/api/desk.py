"""What stands behind the door: the use cases that the endpoints call, handed in by wiring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import Request

from hallporter.api.identity import Doorkeeper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hallporter.api.metrics import Metrics
    from hallporter.domain.finding import Examination
    from hallporter.domain.group import Group, SenderRule
    from hallporter.domain.ids import ChatId, NewId
    from hallporter.ports import Channel, Clock, Feed
    from hallporter.switchboard.enclosures import Enclosures
    from hallporter.switchboard.forgetting import Forgetting
    from hallporter.switchboard.groups import Groups
    from hallporter.switchboard.importing.importing import Importing
    from hallporter.switchboard.intake import Intake
    from hallporter.switchboard.notices import Notices
    from hallporter.switchboard.sessions import Sessions
    from hallporter.switchboard.status import Status
    from hallporter.switchboard.story import Story
    from hallporter.switchboard.tasks import Tasks
    from hallporter.switchboard.tokens import Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """`admin_digest` is the SHA-256 of the home's admin token; `dismiss` returns when nobody works
    for a group any more."""

    intake: Intake
    story: Story
    enclosures: Enclosures
    groups: Groups
    tokens: Tokens
    sessions: Sessions
    notices: Notices
    tasks: Tasks
    forgetting: Forgetting
    importing: Importing
    status: Status
    metrics: Metrics
    feed: Feed
    clock: Clock
    new_id: NewId
    web: Channel
    channel_of: Callable[[ChatId], Channel | None]
    kind_of: Callable[[Group], str]
    senders_of: Callable[[Group], SenderRule | None]
    dismiss: Callable[[Group], Awaitable[None]]
    assistant_name: str
    examine: Callable[[], Awaitable[Examination]]
    mend: Callable[[], Awaitable[Examination]]
    admin_digest: str
    version: str

    @property
    def doorkeeper(self) -> Doorkeeper:
        """Who knows the callers."""
        return Doorkeeper(tokens=self.tokens, admin_digest=self.admin_digest)


# `async` though nothing is awaited: FastAPI would send a plain function to a thread, every time.
async def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


At = Annotated[Desk, Depends(_desk)]
"""The desk of the app that serves the request."""
