"""The named statements, read once from `sql/queries.sql`."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Row(Protocol):
    """One row, read by column name."""

    def __getitem__(self, column: str, /) -> Any: ...  # noqa: ANN401  a column's type is its table's


class Run(Protocol):
    """Runs a named statement on an open transaction and gives its rows."""

    def __call__(self, name: str, /, **values: object) -> Sequence[Row]: ...


@cache
def load() -> Mapping[str, str]:
    """Statement by name."""
    text = (resources.files("hallporter.stores") / "sql" / "queries.sql").read_text("utf-8")
    pieces = _NAME.split(text)[1:]
    return {
        name: body.strip().rstrip(";") for name, body in zip(pieces[::2], pieces[1::2], strict=True)
    }
