"""How much is taken at once of something that may be long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE_SIZE = 1_000_000  # characters of text that one page of a transcript may have


def fitting(sizes: Iterable[int], most: int) -> int:
    """How many of them, from the first on, are together no more than `most`; one always is."""
    total = 0
    count = 0
    for size in sizes:
        total += size
        if count and total > most:
            break
        count += 1
    return count
