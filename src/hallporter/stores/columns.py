"""How values of the domain look in a column."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hallporter.domain.enclosure import Enclosure

if TYPE_CHECKING:
    from collections.abc import Sequence


def time_in(moment: datetime | None) -> str | None:
    """Fixed width in UTC, so that text order is time order."""
    if moment is None:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_out(text: str) -> datetime:
    """The moment that a column holds."""
    return datetime.fromisoformat(text)


def maybe_time_out(text: str | None) -> datetime | None:
    """The same for a column that may be empty."""
    return None if text is None else time_out(text)


def files_in(files: Sequence[Enclosure]) -> str:
    """Most messages have none, and an index looks for exactly that."""
    return json.dumps([asdict(file) for file in files]) if files else "[]"


def files_out(text: str) -> tuple[Enclosure, ...]:
    """The files that a column holds."""
    return tuple(Enclosure(**file) for file in json.loads(text)) if text != "[]" else ()
