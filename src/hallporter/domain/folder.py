"""The rule for a group's folder name, which becomes a path and a mount."""

from __future__ import annotations

import re

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.ids import Folder

MAX_LENGTH = 64  # characters
_SHAPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RESERVED = frozenset({"global", "errors"})  # shared folder, quarantine


def check_shape(name: str) -> None:
    """Whether it is one plain step of a path; reserved ones are, too. Raises
    `InvalidRequestError`."""
    if not _SHAPE.fullmatch(name):
        message = (
            f"folder {name[:80]!r} is not allowed: use letters, digits, '_' and '-', beginning"
            f" with a letter or digit, at most {MAX_LENGTH} characters"
        )
        raise InvalidRequestError(message, field="folder", value=name[:80])


def parse_folder(name: str) -> Folder:
    """The name as a folder, or an error that says what is allowed."""
    check_shape(name)
    if name.casefold() in _RESERVED:
        message = f"folder {name!r} is reserved: choose another name"
        raise InvalidRequestError(message, field="folder", value=name)
    return Folder(name)
