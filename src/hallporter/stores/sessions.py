"""Logged-in browsers in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.ids import SessionId, TokenId
from hallporter.domain.visit import Session
from hallporter.stores.columns import maybe_time_out, time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hallporter.stores.queries import Row, Run


class SqlSessions:
    """`books.Sessions` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, session: Session) -> None:
        self._run(
            "session_add",
            id=session.id,
            digest=session.digest,
            token=session.token,
            address=session.address,
            browser=session.browser,
            created_at=time_in(session.created_at),
            used_at=time_in(session.used_at),
            revoked_at=time_in(session.revoked_at),
        )

    def of_digest(self, digest: str) -> Session | None:
        return _first(self._run("session_of_digest", digest=digest))

    def get(self, session: SessionId) -> Session | None:
        return _first(self._run("session_get", id=session))

    def all(self) -> Sequence[Session]:
        return [_session(row) for row in self._run("session_all")]

    def save(self, session: Session) -> None:
        self._run(
            "session_save",
            id=session.id,
            used_at=time_in(session.used_at),
            revoked_at=time_in(session.revoked_at),
        )

    def forget(self, unused_since: datetime) -> None:
        self._run("session_forget", unused_since=time_in(unused_since))


def _first(rows: Sequence[Row]) -> Session | None:
    return _session(rows[0]) if rows else None


def _session(row: Row) -> Session:
    return Session(
        id=SessionId(row["id"]),
        digest=row["digest"],
        token=None if row["token"] is None else TokenId(row["token"]),
        address=row["address"],
        browser=row["browser"],
        created_at=time_out(row["created_at"]),
        used_at=time_out(row["used_at"]),
        revoked_at=maybe_time_out(row["revoked_at"]),
    )
