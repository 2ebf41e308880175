"""Events with fields, on stderr: readable at a terminal, one JSON object a line elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from structlog.typing import Processor

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure(level: str) -> None:
    """Once per process, before anything is logged."""
    threshold = _LEVELS[level]
    renderer: list[Processor]
    if sys.stderr.isatty():
        renderer = [structlog.dev.ConsoleRenderer()]
    else:
        renderer = [
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    # What libraries say on their own: only when something is wrong.
    logging.basicConfig(level=max(threshold, logging.WARNING), stream=sys.stderr, force=True)
