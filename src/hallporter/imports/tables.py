"""Tables of a database that may be damaged, or made to do harm, row by row."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from hallporter.domain.foreign import Unread
from hallporter.imports.snapshot import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1  # that a row's number can be
_TABLES = """
SELECT LOWER(name) AS name, type = 'table' AND rootpage > 0 AS is_stored
FROM sqlite_master WHERE type IN ('table', 'view')
"""


class Tables:
    """`columns` are by table; one that is not there is NULL, as older versions lack some."""

    def __init__(
        self, connection: sqlite3.Connection, columns: Mapping[str, Sequence[str]]
    ) -> None:
        self._connection = connection
        self._columns = columns
        self._statements: dict[tuple[str, Sequence[str]], str] = {}
        self._stored = {row["name"]: row["is_stored"] for row in connection.execute(_TABLES)}

    def has(self, table: str) -> bool:
        return table in self._stored

    def computed(self) -> str | None:
        """One of them that is a view or the like: what is computed may never end."""
        return next((table for table in self._columns if not self._stored.get(table, True)), None)

    def rows(
        self, table: str, *, columns: Sequence[str] | None = None
    ) -> Iterator[sqlite3.Row | Unread]:
        """As they were stored, each with its `number`. What can be read of a damaged file is read;
        a table that is not there is empty."""
        start = _LOWEST
        try:
            asked = self._asked(table, columns)
            while asked and start <= _HIGHEST:
                try:
                    for row in self._connection.execute(f"{asked} >= ? ORDER BY rowid", (start,)):
                        # In a tree that leads back to itself this would go on for ever.
                        if not isinstance(row["number"], int) or row["number"] < start:
                            raise sqlite3.DatabaseError("its rows are out of order")
                        start = row["number"] + 1
                        yield row
                except sqlite3.DataError:
                    number = self._first(table, start)
                    start = number + 1
                    yield _too_long(table, number)
                else:
                    return
        except sqlite3.Error as error:
            yield Unread(name=f"table {table}", why=f"the rest cannot be read: {error}")

    def row(self, table: str, number: int) -> sqlite3.Row | Unread:
        name = f"row {number} of {table}"
        try:
            asked = f"{self._asked(table, None)} = ?"
            found: sqlite3.Row | None = self._connection.execute(asked, (number,)).fetchone()
        except sqlite3.DataError:
            return _too_long(table, number)
        except sqlite3.Error as error:
            return Unread(name=name, why=f"it cannot be read: {error}")
        return Unread(name=name, why="it cannot be found again") if found is None else found

    def _first(self, table: str, start: int) -> int:
        asked = f"SELECT MIN(rowid) FROM {table} WHERE rowid >= ?"  # noqa: S608  a name of ours
        return int(self._connection.execute(asked, (start,)).fetchone()[0])

    def _asked(self, table: str, columns: Sequence[str] | None) -> str:
        """A statement that only lacks which rows; empty when there is no such table."""
        wanted = self._columns[table] if columns is None else columns
        if (table, wanted) not in self._statements:
            info = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            there = {row["name"] for row in info}
            names = (name if name in there else f"NULL AS {name}" for name in wanted)
            listed = ", ".join(("rowid AS number", *names))
            asked = f"SELECT {listed} FROM {table} WHERE rowid"  # noqa: S608  names of ours
            self._statements[table, wanted] = asked if there else ""
        return self._statements[table, wanted]


def _too_long(table: str, number: int) -> Unread:
    why = f"something in it has more than {LONGEST:,} bytes"
    return Unread(name=f"row {number} of {table}", why=why)
