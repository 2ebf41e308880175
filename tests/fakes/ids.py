"""Ids that a person can read in a failing test."""

from __future__ import annotations

import itertools

# One count for all: a test that opens its house twice must not meet the same id again.
_COUNT = itertools.count(1)


def counting_id(prefix: str) -> str:
    """`domain.ids.NewId`: m_00001, m_00002, t_00003, …; in the order in which they were made."""
    return f"{prefix}_{next(_COUNT):05d}"
