"""One-time links in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.visit import Link
from hallporter.stores.columns import maybe_time_out, time_in, time_out

if TYPE_CHECKING:
    from datetime import datetime

    from hallporter.stores.queries import Run


class SqlLinks:
    """`books.Links` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def add(self, link: Link) -> None:
        self._run("link_add", digest=link.digest, expires_at=time_in(link.expires_at))

    def get(self, digest: str) -> Link | None:
        rows = self._run("link_get", digest=digest)
        if not rows:
            return None
        return Link(
            digest=rows[0]["digest"],
            expires_at=time_out(rows[0]["expires_at"]),
            used_at=maybe_time_out(rows[0]["used_at"]),
        )

    def use(self, digest: str, at: datetime) -> None:
        self._run("link_use", digest=digest, used_at=time_in(at))

    def forget(self, before: datetime) -> None:
        self._run("link_forget", before=time_in(before))
