"""Ids that a person can read in a failing test."""

from __future__ import annotations

import itertools

# One count for all: a test that opens its house twice must not meet the same id again.
_COUNT = itertools.count(1)


def counting_id(prefix: str) -> str:
    """`domain.ids.NewId`: m_1, m_2, t_3, …"""
    return f"{prefix}_{next(_COUNT)}"
