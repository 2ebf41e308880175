"""Tokens in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.ids import ChatId, TokenId
from hallporter.domain.token import Role, Token
from hallporter.stores.columns import maybe_time_out, time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.stores.queries import Row, Run


class SqlTokens:
    """`books.Tokens` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, token: Token) -> None:
        self._run(
            "token_add",
            id=token.id,
            digest=token.digest,
            role=str(token.role),
            subject=token.subject,
            chat=token.chat,
            created_at=time_in(token.created_at),
            expires_at=time_in(token.expires_at),
            used_at=time_in(token.used_at),
            revoked_at=time_in(token.revoked_at),
        )

    def of_digest(self, digest: str) -> Token | None:
        return _first(self._run("token_of_digest", digest=digest))

    def get(self, token: TokenId) -> Token | None:
        return _first(self._run("token_get", id=token))

    def all(self) -> Sequence[Token]:
        return [_token(row) for row in self._run("token_all")]

    def save(self, token: Token) -> None:
        self._run(
            "token_save",
            id=token.id,
            used_at=time_in(token.used_at),
            revoked_at=time_in(token.revoked_at),
        )


def _first(rows: Sequence[Row]) -> Token | None:
    return _token(rows[0]) if rows else None


def _token(row: Row) -> Token:
    return Token(
        id=TokenId(row["id"]),
        digest=row["digest"],
        role=Role(row["role"]),
        subject=row["subject"],
        chat=None if row["chat"] is None else ChatId(row["chat"]),
        created_at=time_out(row["created_at"]),
        expires_at=maybe_time_out(row["expires_at"]),
        used_at=maybe_time_out(row["used_at"]),
        revoked_at=maybe_time_out(row["revoked_at"]),
    )
