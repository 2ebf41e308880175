"""A bearer token of ours: shown once, kept as a hash."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.domain.ids import ChatId, TokenId

PREFIX = "hp_"
OPERATOR = "operator"
"""Who speaks on the page and with the home's own token; no consumer is known by it."""

_LIFETIME = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST = timedelta(days=36_500)


class Role(StrEnum):
    """What a caller may do; derived on the server, always."""

    CONSUMER_APP = "consumer_app"
    CONSUMER_WHATSAPP = "consumer_whatsapp"
    STUDIO_OPERATOR = "studio_operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """`chat` limits a consumer's token to one web chat."""

    id: TokenId
    digest: str
    role: Role
    subject: str
    created_at: datetime
    chat: ChatId | None = None
    expires_at: datetime | None = None
    used_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, as the server knows them."""

    subject: str
    role: Role
    chat: ChatId | None = None

    @property
    def is_operator(self) -> bool:
        """Whether the whole house is open to them."""
        return self.role is Role.STUDIO_OPERATOR

    def may_use(self, chat: ChatId) -> bool:
        """Operators everywhere; others only in the chat their token was made for."""
        return self.is_operator or self.chat == chat


def digest(secret: str) -> str:
    """How a token is looked up; high-entropy secrets need no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def parse_lifetime(text: str) -> timedelta:
    """`90s`, `30m`, `12h`, `30d`, `2w`. Raises `InvalidRequestError`."""
    match = _LIFETIME.fullmatch(text.strip())
    lifetime = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta(0)
    if not timedelta(0) < lifetime <= _LONGEST:
        message = f"{text[:80]!r} is no time to live: write for example '12h', '30d' or '8w'"
        raise InvalidRequestError(message, field="expires", value=text[:80])
    return lifetime
