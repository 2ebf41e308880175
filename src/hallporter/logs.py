"""Events with fields, on stderr: readable at a terminal, one JSON object a line elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog
from structlog.tracebacks import ExceptionDictTransformer

if TYPE_CHECKING:
    from structlog.typing import Processor

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

# Without the variables of each frame: they hold people's words and tokens.
_TRACEBACKS = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
_JSON = structlog.processors.JSONRenderer(ensure_ascii=False, default=str)


def configure(level: str) -> None:
    """Once per process, before anything is logged."""
    threshold = _LEVELS[level]
    renderer: list[Processor]
    if sys.stderr.isatty():
        plain = structlog.dev.plain_traceback  # the pretty one shows variables
        renderer = [structlog.dev.ConsoleRenderer(exception_formatter=plain)]
    else:
        renderer = [_TRACEBACKS, _JSON]
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
