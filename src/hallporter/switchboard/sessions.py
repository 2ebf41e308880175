"""Logging in to the pages: by a one-time link or an operator's token, for one browser at a time."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.errors import NotFoundError, UnauthorizedError
from hallporter.domain.happening import AccessChanged
from hallporter.domain.ids import SessionId
from hallporter.domain.token import Role, digest
from hallporter.domain.visit import IDLE_LASTS, LINK_LASTS, Link, Session
from hallporter.switchboard.attempts import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hallporter.books import Tx
    from hallporter.domain.ids import NewId, TokenId
    from hallporter.ports import Clock, Feed, Store

log = structlog.get_logger(__name__)

_SECRET_BYTES = 32
_USE_NOTED_EVERY = timedelta(minutes=1)  # a write per request would cost more than it tells
_MAX_BROWSER = 300  # characters of what a browser says of itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """The only moment a link's secret is known."""

    secret: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """The only moment a session's secret is known to us; the browser keeps it."""

    session: Session
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """Who knocks: where from, and with what."""

    address: str
    name: str


class Sessions:
    """The use cases behind `link`, `/login` and `/sessions`, and the look-up at every page."""

    def __init__(
        self, *, store: Store, clock: Clock, feed: Feed, new_id: NewId, admin_digest: str
    ) -> None:
        self._store = store
        self._clock = clock
        self._feed = feed
        self._new_id = new_id
        self._admin_digest = admin_digest
        self._attempts = Attempts(clock=clock)

    async def invite(self) -> Invitation:
        """A link for five minutes that opens the door once."""
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        link = Link(digest=digest(secret), expires_at=self._clock.now() + LINK_LASTS)

        def fn(tx: Tx) -> None:
            tx.links.forget(self._clock.now())
            tx.links.add(link)

        await self._store.write(fn)
        return Invitation(secret=secret, expires_at=link.expires_at)

    async def enter_by_link(self, secret: str, browser: Browser) -> LoggedIn:
        """Raises `UnauthorizedError`. Failures do not count: nobody guesses a link, but any page on
        the web could ask for wrong ones and so lock the operator out."""
        key = digest(secret)

        def use(tx: Tx) -> TokenId | None:
            now = self._clock.now()
            link = tx.links.get(key)
            if link is None or not link.is_valid(now):
                message = (
                    "this link is used up or too old: it works once, for five minutes;"
                    " `hallporter link` prints a fresh one"
                )
                raise UnauthorizedError(message)
            tx.links.use(key, now)
            return None

        return await self._enter(use, browser)

    async def enter_by_token(self, secret: str, browser: Browser) -> LoggedIn:
        """By an operator's token, with which the session ends. Raises `UnauthorizedError`, or
        `RateLimitedError` after too many failures."""
        key = digest(secret.strip())

        def use(tx: Tx) -> TokenId | None:
            if hmac.compare_digest(key, self._admin_digest):
                return None
            token = tx.tokens.of_digest(key)
            if token is None or not token.is_valid(self._clock.now()):
                raise UnauthorizedError("this token is unknown, expired or revoked")
            if token.role is not Role.STUDIO_OPERATOR:
                message = "this token is not an operator's: the pages are for operators"
                raise UnauthorizedError(message)
            return token.id

        self._attempts.check(browser.address)
        try:
            return await self._enter(use, browser)
        except UnauthorizedError:
            self._attempts.failed(browser.address)
            raise

    async def find(self, secret: str) -> Session:
        """The session of this secret; raises `UnauthorizedError` when there is none any more."""
        key = digest(secret)
        now = self._clock.now()
        session = await self._store.read(lambda tx: _living(tx, key, now))
        if session is None:
            raise UnauthorizedError("you are logged out: log in again")
        if now - session.used_at >= _USE_NOTED_EVERY:
            await self._store.write(lambda tx: _note_use(tx, session.id, now))
        return session

    async def all(self) -> Sequence[Session]:
        """Those that are logged in, the last used one first."""
        now = self._clock.now()

        def fn(tx: Tx) -> Sequence[Session]:
            return [s for s in tx.sessions.all() if _living(tx, s.digest, now) is not None]

        return await self._store.read(fn)

    async def revoke(self, session: str) -> None:
        """Acts at once: the next request is refused, and an open stream ends."""

        def fn(tx: Tx) -> None:
            found = tx.sessions.get(SessionId(session))
            if found is None:
                raise NotFoundError(f"no session {session[:80]!r}", field="id")
            tx.sessions.save(replace(found, revoked_at=self._clock.now()))
            tx.after_commit(lambda: self._feed.publish(AccessChanged()))

        await self._store.write(fn)
        log.info("session.revoked", session=session)

    async def _enter(self, use: Callable[[Tx], TokenId | None], browser: Browser) -> LoggedIn:
        # Always a fresh secret: one that was planted in the browser before is worth nothing.
        secret = secrets.token_urlsafe(_SECRET_BYTES)

        def fn(tx: Tx) -> Session:
            now = self._clock.now()
            tx.sessions.forget(now - IDLE_LASTS)
            session = Session(
                id=SessionId(self._new_id("s")),
                digest=digest(secret),
                token=use(tx),
                address=browser.address,
                browser=browser.name[:_MAX_BROWSER],
                created_at=now,
                used_at=now,
            )
            tx.sessions.add(session)
            return session

        try:
            session = await self._store.write(fn)
        except UnauthorizedError:
            log.warning("session.refused", address=browser.address)
            raise
        log.info("session.opened", session=session.id, address=browser.address)
        return LoggedIn(session=session, secret=secret)


def _living(tx: Tx, key: str, now: datetime) -> Session | None:
    session = tx.sessions.of_digest(key)
    if session is None or not session.is_valid(now):
        return None
    if session.token is not None:
        token = tx.tokens.get(session.token)
        if token is None or not token.is_valid(now):
            return None
    return session


def _note_use(tx: Tx, session: SessionId, now: datetime) -> None:
    found = tx.sessions.get(session)
    if found is not None:
        tx.sessions.save(replace(found, used_at=now))
