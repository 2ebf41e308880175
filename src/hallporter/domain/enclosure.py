"""A file that goes along with a message: what it is called, and where an agent says it lies."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.ids import EnclosureId, Folder

MAX_ENCLOSURE = 16 * 1024 * 1024  # bytes
UNKNOWN_TYPE = "application/octet-stream"

_WORKSPACE = ("workspace",)
_GROUP, _GLOBAL = (*_WORKSPACE, "group"), (*_WORKSPACE, "global")
_MAX_PATH = 4096  # bytes; what the system takes
_EXCERPT = 80  # characters of a path in an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    """`name` and `type` are as its sender would have them: to be shown, never to be relied on."""

    id: EnclosureId
    folder: Folder  # of the group whose chat has it; its bytes lie there
    name: str
    size: int  # bytes
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlace:
    """A file in a group's folder, or in the one that all groups share."""

    parts: tuple[str, ...]
    is_shared: bool = False

    @property
    def name(self) -> str:
        """As it can be shown: on one line, in reading order."""
        return "".join(one if one.isprintable() else "_" for one in self.parts[-1])


def place_of(path: str, *, is_main: bool) -> FilePlace:
    """From a path as an agent sees it. Raises `InvalidRequestError` with a sentence for it."""
    shown = excerpt(path)
    if "\0" in path or not _is_text(path) or len(path.encode()) > _MAX_PATH:
        raise InvalidRequestError(f"the file {shown} has a path that no file can have")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise InvalidRequestError(f"the file {shown} is named with '..': name it without")
    is_shared = False
    if path.startswith("/"):
        root, parts = parts[: len(_GROUP)], parts[len(_GROUP) :]
        is_shared = root == _GLOBAL
        if root not in (_GROUP, _GLOBAL):
            raise InvalidRequestError(
                f"the file {shown} lies elsewhere: only files below /workspace/group can be sent;"
                " copy it there first"
            )
    if is_shared and not is_main:
        raise InvalidRequestError(
            "only the main group may send files of /workspace/global:"
            " copy it to /workspace/group first"
        )
    if not parts:
        raise InvalidRequestError(f"the file {shown} is none: name one below /workspace/group")
    return FilePlace(parts=parts, is_shared=is_shared)


def media_type(name: str) -> str:
    """What its ending makes of it."""
    ending = name.rpartition(".")[2]
    # Under a name of ours: a whole one is read like an address, which may name any type.
    guessed, packing = _types().guess_type(f"file.{ending}")
    return guessed if guessed is not None and packing is None else UNKNOWN_TYPE


def mentioning(text: str, files: Sequence[Enclosure], words: str) -> str:
    """The text and a line for each file, in which `{}` of the words is its name."""
    lines = [words.format(file.name) for file in files]
    return "\n\n".join([*([text] if text else []), *lines])


def excerpt(path: str) -> str:
    """So much of a path as an answer can hold."""
    return repr(path[:_EXCERPT])


@cache
def _types() -> mimetypes.MimeTypes:
    # Not the machine's own table, which says something else on the next machine.
    return mimetypes.MimeTypes()


def _is_text(path: str) -> bool:
    return not any("\ud800" <= one <= "\udfff" for one in path)
