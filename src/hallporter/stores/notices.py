"""Notices in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.ids import ChatId
from hallporter.domain.notice import Failing, Notice, Undelivered
from hallporter.stores.columns import maybe_time_out, time_in, time_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hallporter.stores.queries import Row, Run


class SqlNotices:
    """`books.Notices` on named statements."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def save(self, notice: Notice) -> None:
        self._run(
            "notice_save",
            key=notice.key,
            text=notice.text,
            raised_at=time_in(notice.raised_at),
            is_quiet=int(notice.is_quiet),
            told_at=time_in(notice.told_at),
            resolved_at=time_in(notice.resolved_at),
        )

    def get(self, key: str) -> Notice | None:
        rows = self._run("notice_get", key=key)
        return _notice(rows[0]) if rows else None

    def all(self) -> Sequence[Notice]:
        return [_notice(row) for row in self._run("notice_all")]

    def open(self) -> Sequence[Notice]:
        return [_notice(row) for row in self._run("notice_open")]

    def failing(self) -> Sequence[Failing]:
        return [
            Failing(
                chat=ChatId(row["chat"]),
                folder=row["folder"],
                why=row["why"],
                is_stuck=bool(row["is_stuck"]),
            )
            for row in self._run("notice_failing")
        ]

    def undelivered(self, since: datetime) -> Sequence[Undelivered]:
        return [
            Undelivered(
                chat=ChatId(row["chat"]),
                count=row["count"],
                last=time_out(row["last"]),
                why=row["why"],
            )
            for row in self._run("notice_undelivered", since=time_in(since))
        ]


def _notice(row: Row) -> Notice:
    return Notice(
        key=row["key"],
        text=row["text"],
        raised_at=time_out(row["raised_at"]),
        is_quiet=bool(row["is_quiet"]),
        told_at=maybe_time_out(row["told_at"]),
        resolved_at=maybe_time_out(row["resolved_at"]),
    )
