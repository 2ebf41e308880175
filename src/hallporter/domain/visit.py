"""A browser that has logged in, and the one-time link that lets one in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.ids import SessionId, TokenId

LINK_LASTS = timedelta(minutes=5)
IDLE_LASTS = timedelta(days=30)  # a browser that did not come back for so long is logged out


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Opens the door once; kept as a hash."""

    digest: str
    expires_at: datetime
    used_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Neither used nor too old."""
        return self.used_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """`token` is the one it was opened with, if it was a token: it ends with it. `address` and
    `browser` are what the operator knows it by."""

    id: SessionId
    digest: str
    created_at: datetime
    used_at: datetime
    token: TokenId | None = None
    address: str = ""
    browser: str = ""
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Neither revoked nor long unused."""
        return self.revoked_at is None and now - self.used_at < IDLE_LASTS
