"""Numbered changes of the schema: each once, in order, checked against what was applied before."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from hallporter.domain.errors import StoreRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE = re.compile(r"(\d{4})_(\w+)\.(\w+)\.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One file; its checksum is kept beside its number."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Of the text as applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def load(dialect: str) -> tuple[Migration, ...]:
    """All migrations for one database, in order."""
    found: list[Migration] = []
    for file in (resources.files("hallporter.stores") / "migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match and match.group(3) == dialect:
            sql = file.read_text("utf-8")
            found.append(Migration(number=int(match.group(1)), name=match.group(2), sql=sql))
    return tuple(sorted(found, key=lambda migration: migration.number))


def outstanding(known: Sequence[Migration], applied: Mapping[int, str]) -> Sequence[Migration]:
    """What is still to be applied; refuses a schema that this version does not know."""
    newest = known[-1].number if known else 0
    ahead = max(applied, default=0)
    if ahead > newest:
        message = (
            f"the database has schema {ahead}, this version knows {newest}:"
            " it was written by a newer Hallporter; install that one (nothing was changed)"
        )
        raise StoreRefusedError(message, schema=ahead, known=newest)
    for migration in known:
        checksum = applied.get(migration.number)
        if checksum is not None and checksum != migration.checksum:
            message = (
                f"schema step {migration.number} ({migration.name}) was applied in another form:"
                " the database was made by a build in which this step reads differently, and this"
                " one would misread it. Use the build that made it (nothing was changed)"
            )
            raise StoreRefusedError(message, schema=migration.number)
    return [migration for migration in known if migration.number not in applied]
