"""Events with fields: on stderr for whoever watches, and as JSON lines in files of limited size."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from hallporter.domain.terminal import escaped, escaped_json, harmless

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TextIO

    from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_MODE = 0o600

# Without the variables of each frame: they hold people's words and tokens.
_TRACEBACKS = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
_RENDER_JSON = structlog.processors.JSONRenderer(ensure_ascii=False, default=str)


class LogFile:
    """One line an event. A full file becomes `.1`, what was `.1` becomes `.2`; the oldest goes."""

    def __init__(self, path: Path, *, max_size: int, keep: int) -> None:
        self._path = path
        self._max_size = max_size
        self._keep = keep
        self._lock = threading.Lock()  # the store's writer has a thread of its own
        self._file: int | None = None
        self._size = 0

    def write(self, line: str) -> None:
        """What cannot be written is left out: a full disk must not end the host."""
        data = f"{line}\n".encode(errors="replace")
        with self._lock, contextlib.suppress(OSError):
            if self._file is None:
                self._open()
            if self._size and self._size + len(data) > self._max_size:
                self._turn_over()
            if self._file is not None:
                self._size += os.write(self._file, data)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self._path, flags, _MODE)
        self._size = os.fstat(self._file).st_size

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _turn_over(self) -> None:
        self._close()
        for number, file in reversed(_put_aside(self._path)):
            if number >= self._keep:
                file.unlink()
            else:
                file.rename(_numbered(self._path, number + 1))
        self._path.rename(_numbered(self._path, 1))
        self._open()


def log_files(path: Path) -> Sequence[Path]:
    """All that is kept, oldest first; the last is the one that is written now."""
    aside = [file for _, file in reversed(_put_aside(path))]
    return [*aside, path] if path.exists() else aside


def configure(level: str, file: LogFile | None = None) -> None:
    """Once per process, before anything is logged."""
    threshold = _LEVELS[level]
    renderer: list[Processor]
    if sys.stderr.isatty():
        renderer = [_escape, structlog.dev.ConsoleRenderer(exception_formatter=_format_traceback)]
    else:
        renderer = [_TRACEBACKS, _json]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if file is None else [_copied_to(file)]),
            *renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    # What libraries say on their own: only when something is wrong.
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(_Harmless())
    handlers: list[logging.Handler] = [shown]
    if file is not None:
        handlers.append(_Foreign(file))
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=handlers, force=True)


def _put_aside(path: Path) -> list[tuple[int, Path]]:
    """Newest first."""
    return sorted(
        (int(file.suffix[1:]), file)
        for file in path.parent.glob(f"{path.name}.*")
        if file.suffix[1:].isdecimal()
    )


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _copied_to(file: LogFile) -> Processor:
    def copy(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
        file.write(_json(logger, name, _TRACEBACKS(logger, name, dict(event))))
        return event

    return copy


def _json(logger: WrappedLogger, name: str, event: EventDict) -> str:
    return escaped_json(str(_RENDER_JSON(logger, name, event)))


def _escape(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Agents' words are among the fields. What is no text is shown by its `repr`, which escapes."""
    return {
        escaped(key): escaped(value) if isinstance(value, str) else value
        for key, value in event.items()
    }


def _format_traceback(shown: TextIO, error: ExcInfo) -> None:
    """Plain: the pretty one shows variables."""
    told = io.StringIO()
    structlog.dev.plain_traceback(told, error)
    shown.write(harmless(told.getvalue()))


class _Harmless(logging.Formatter):
    """A library's line as a terminal may get it."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


class _Foreign(logging.Handler):
    """A library's line in the form of ours."""

    def __init__(self, file: LogFile) -> None:
        super().__init__()
        self._log_file = file

    def emit(self, record: logging.LogRecord) -> None:
        line = {
            "logger": record.name,
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        self._log_file.write(escaped_json(json.dumps(line, ensure_ascii=False)))
