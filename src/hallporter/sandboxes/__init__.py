"""Where a runner lives: the boxes that programs run in, and what keeps them there."""

from __future__ import annotations
