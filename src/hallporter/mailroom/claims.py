"""Taking requests out of an agent's reach: from then on they are ours, and happen once."""

from __future__ import annotations

import itertools
import os
import stat
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.command import Box
from hallporter.domain.ids import CommandId, Folder
from hallporter.removal import is_directory, open_up, opened, remove
from hallporter_wire.requests import MAX_REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hallporter.domain.ids import NewId
    from hallporter.mailroom.folders import Folders

log = structlog.get_logger(__name__)

MAX_NAME = 128  # bytes of a request's name: room for our own words around it
_MOST = 10_000  # requests seen in one look
_FIELD = "~"  # between the parts of a claim's name
_ODD = "!"  # behind the box: the request's own name was another, and cannot be used
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A request that is ours; `problem` says why it can be none, and `content` is as much of it as
    we have read. A result can be given under its name if that is its own."""

    id: CommandId
    folder: Folder
    box: Box
    name: str  # as far as it can be written down
    is_own_name: bool
    content: bytes
    problem: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one look into a box has brought; `is_more` when something is left there."""

    claims: Sequence[Claim]
    is_more: bool


class Claims:
    """`data/claims`, in no agent's mount. A claim's name keeps where it came from, so that a host
    that was cut short goes on with it; a rename is all it takes to claim."""

    def __init__(self, path: Path, *, folders: Folders, new_id: NewId) -> None:
        self._path = path
        self._folders = folders
        self._new_id = new_id

    def take(self, folder: Folder, box: Box, limit: int) -> Taken:
        """The first requests of a box, by their names. Raises OSError."""
        place = self._path / folder
        place.mkdir(exist_ok=True)
        with self._folders.box(folder, box) as source, opened(place) as ours:
            with os.scandir(source) as entries:
                # Whatever else lies there does not count: it must not hide a request.
                names = filter(is_request, (entry.name for entry in entries))
                waiting = deque(sorted(itertools.islice(names, _MOST)))
                is_cut = len(waiting) == _MOST
            files: list[str] = []
            while waiting and len(files) < limit:
                file = self._claim(source, ours, box, waiting.popleft())
                if file is not None:
                    files.append(file)
            claims = [self._read(folder, ours, file) for file in files]
        return Taken(claims=claims, is_more=bool(waiting) or is_cut)

    def left(self) -> Iterator[Claim]:
        """What an earlier host had claimed and not finished, in the order of its claims."""
        for place in sorted(self._path.iterdir()):
            if place.is_symlink() or not place.is_dir():
                continue
            with opened(place) as ours:
                for file in sorted(os.listdir(ours)):  # noqa: PTH208  a handle, not a path
                    yield self._read(Folder(place.name), ours, file)

    def _claim(self, source: int, ours: int, box: Box, name: str) -> str | None:
        where = box if _is_usable(name) else f"{box}{_ODD}"
        file = _FIELD.join((self._new_id("c"), where, _usable(name)))
        try:
            try:
                os.rename(name, file, src_dir_fd=source, dst_dir_fd=ours)
            except PermissionError:
                # A folder that is closed even to its owner cannot be moved.
                if not is_directory(source, name):
                    raise
                open_up(source, name)
                os.rename(name, file, src_dir_fd=source, dst_dir_fd=ours)
        except FileNotFoundError:
            return None  # its agent has thought better of it
        except OSError as error:
            log.warning("command.not_claimed", box=str(box), error=str(error))
            return None
        log.debug("command.claimed", file=file)
        return file

    def _read(self, folder: Folder, ours: int, file: str) -> Claim:
        id_, _, rest = file.partition(_FIELD)
        box, _, name = rest.partition(_FIELD)
        try:
            content, problem = _content(ours, file)
        except OSError as error:
            content, problem = b"", f"it cannot be read: {error.strerror}"
        is_own_name = bool(name) and box in (Box.MESSAGES, Box.TASKS)
        if not problem and not is_own_name:
            problem = (
                "its name cannot be used: a name is UTF-8 without control characters,"
                f" at most {MAX_NAME} bytes"
            )
        return Claim(
            id=CommandId(id_),
            folder=folder,
            box=Box.MESSAGES if box.startswith(Box.MESSAGES) else Box.TASKS,
            name=name or "unnamed.json",
            is_own_name=is_own_name,
            content=content,
            problem=problem,
            path=self._path / folder / file,
        )


def drop(claim: Claim) -> None:
    """It is done with; whatever it was, nothing of it stays."""
    try:
        remove(claim.path)
    except OSError as error:
        log.warning("command.not_removed", id=claim.id, error=str(error))


def is_request(name: str) -> bool:
    """Whether a file is meant for us; others are being written, or none of our business."""
    return name.endswith(".json") and not name.startswith(".")


def _is_usable(name: str) -> bool:
    # A name that is no UTF-8 has half surrogates in it, and they cannot be printed.
    return name.isprintable() and len(name.encode()) <= MAX_NAME


def _usable(name: str) -> str:
    if _is_usable(name):
        return name
    printable = "".join(one if one.isprintable() else "_" for one in name)
    return printable.encode()[: MAX_NAME // 2].decode(errors="ignore") + ".json"


def _content(ours: int, file: str) -> tuple[bytes, str]:
    """What is in it, and why it is no request."""
    status = os.stat(file, dir_fd=ours, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        return b"", f"it is {kind}, and a request is a file"
    if status.st_nlink != 1:
        return b"", "it is a file with other names (hard links), and a request has one"
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, dir_fd=ours), "rb") as opened_file:
        content = opened_file.read(MAX_REQUEST + 1)
    if len(content) > MAX_REQUEST:
        return content, f"it is larger than {MAX_REQUEST:,} bytes"
    return content, ""
