"""Bearer tokens: made once, shown once, looked up by hash."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError, NotFoundError
from hallporter.domain.happening import AccessChanged
from hallporter.domain.ids import ChatId, TokenId
from hallporter.domain.token import OPERATOR, PREFIX, Caller, Role, Token, digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.books import Tx
    from hallporter.domain.ids import NewId
    from hallporter.ports import Clock, Feed, Store

_SECRET_BYTES = 32
_USE_NOTED_EVERY = timedelta(minutes=1)  # a write per request would cost more than it tells
_MAX_SUBJECT = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """The only moment the secret is known."""

    token: Token
    secret: str


class Tokens:
    """The use cases behind `tokens …` and `/api/tokens`, and the look-up at the door."""

    def __init__(self, *, store: Store, clock: Clock, feed: Feed, new_id: NewId) -> None:
        self._store = store
        self._clock = clock
        self._feed = feed
        self._new_id = new_id

    async def create(
        self,
        *,
        role: str,
        subject: str,
        chat: str | None = None,
        expires_in: timedelta | None = None,
    ) -> Created:
        """Raises `InvalidRequestError` for an unknown role, or a subject that is empty or taken."""
        if role not in set(Role):
            allowed = ", ".join(Role)
            message = f"role {role!r} does not exist: use one of {allowed}"
            raise InvalidRequestError(message, field="role", value=role)
        if not 0 < len(subject.strip()) <= _MAX_SUBJECT:
            message = f"a subject has 1 to {_MAX_SUBJECT} characters: who will use the token?"
            raise InvalidRequestError(message, field="subject", value=subject[:80])
        if role != Role.STUDIO_OPERATOR and subject.strip().casefold() == OPERATOR:
            message = f"the subject {OPERATOR!r} is the house's own: name who will use the token"
            raise InvalidRequestError(message, field="subject", value=subject)
        if chat is not None and role == Role.STUDIO_OPERATOR:
            message = f"a {role} opens every chat: leave 'chat' out, or choose a consumer's role"
            raise InvalidRequestError(message, field="chat", value=chat)
        if expires_in is not None and expires_in <= timedelta(0):
            message = "a token must expire in the future, for example after '30d'"
            raise InvalidRequestError(message, field="expires", value=str(expires_in))
        now = self._clock.now()
        secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        token = Token(
            id=TokenId(self._new_id("tok")),
            digest=digest(secret),
            role=Role(role),
            subject=subject.strip(),
            created_at=now,
            chat=None if chat is None else ChatId(chat),
            expires_at=None if expires_in is None else now + expires_in,
        )
        await self._store.write(lambda tx: tx.tokens.add(token))
        return Created(token=token, secret=secret)

    async def all(self) -> Sequence[Token]:
        return await self._store.read(lambda tx: tx.tokens.all())

    async def revoke(self, token: str) -> Token:
        """Acts at once: the next request with it is refused, and open streams end."""

        def fn(tx: Tx) -> Token:
            found = tx.tokens.get(TokenId(token))
            if found is None:
                raise NotFoundError(f"no token {token!r}", field="id", value=token)
            revoked = replace(found, revoked_at=found.revoked_at or self._clock.now())
            tx.tokens.save(revoked)
            tx.after_commit(lambda: self._feed.publish(AccessChanged()))
            return revoked

        return await self._store.write(fn)

    async def caller(self, secret: str) -> Caller | None:
        """Who holds this secret; None when nobody does any more."""
        key = digest(secret)
        token = await self._store.read(lambda tx: tx.tokens.of_digest(key))
        now = self._clock.now()
        if token is None or not token.is_valid(now):
            return None
        if token.used_at is None or now - token.used_at >= _USE_NOTED_EVERY:
            await self._store.write(lambda tx: _note_use(tx, token.id, self._clock))
        return Caller(subject=token.subject, role=token.role, chat=token.chat)


def _note_use(tx: Tx, token: TokenId, clock: Clock) -> None:
    found = tx.tokens.get(token)
    if found is not None:
        tx.tokens.save(replace(found, used_at=clock.now()))
