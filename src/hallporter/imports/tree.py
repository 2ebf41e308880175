"""Copying a folder that agents have written to: never along links, and never over what is there."""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from hallporter.domain.import_report import Noun, Outcome, Piece
from hallporter.imports.place import FOLDER, entered, open_file
from hallporter.removal import is_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from threading import Event

    from hallporter.imports.place import Parts

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700
_MODE = 0o777  # what is kept of a mode: nobody becomes someone else by an import
_CHUNK = 1 << 20  # bytes
_OTHER = "another one of this name is there already, and stays"
_LEADS_OUT = "a link that leads out of its folder"


def count_files(top: int, parts: Parts, stopping: Event) -> int:
    """How many `copied` will tell of, more or less."""
    count = 0
    pending = [parts]
    while pending and not stopping.is_set():
        here = pending.pop()
        with contextlib.suppress(OSError), entered(top, here) as folder:
            if folder is None:
                continue
            for entry in os.listdir(folder):  # noqa: PTH208  a handle, not a path
                if is_directory(folder, entry):
                    pending.append((*here, entry))
                else:
                    count += 1
    return count


def copied(
    top: int, parts: Parts, target: Path, *, is_dry_run: bool, stopping: Event
) -> Iterator[Piece]:
    """Each file of the folder that `parts` lead to from `top`, with its mode and time. A file
    comes whole or not at all, so an import that was cut short can be repeated."""
    try:
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(entered(top, parts))
            if source is None:
                return
            copy = _target(target, is_dry_run=is_dry_run)
            if copy is not None:
                stack.callback(os.close, copy)
            yield from _Copying(
                top=source, copy=copy, name=parts, is_dry_run=is_dry_run, stopping=stopping
            ).all()
    except OSError as error:
        yield _piece(parts, Outcome.SKIPPED, _why(error))


def _target(path: Path, *, is_dry_run: bool) -> int | None:
    """None in a dry run, when it is still to be made."""
    if not is_dry_run:
        with contextlib.suppress(FileExistsError):
            path.mkdir(parents=True)
    try:
        return os.open(path, FOLDER)
    except FileNotFoundError:
        if is_dry_run:
            return None
        raise


@dataclass(slots=True, kw_only=True)
class _Copying:
    """Two folders side by side; `copy` is None when there is none, in a dry run."""

    top: int
    copy: int | None
    name: Parts
    is_dry_run: bool
    stopping: Event
    made: list[tuple[Parts, os.stat_result]] = field(default_factory=list)

    def all(self) -> Iterator[Piece]:
        """One open folder at a time on each side, so that no depth can exhaust us."""
        pending: list[Parts] = [()]
        while pending and not self.stopping.is_set():
            parts = pending.pop()
            try:
                yield from self._folder(parts, pending)
            except OSError as error:
                yield self._told(parts, Outcome.SKIPPED, _why(error))
        for parts, found in reversed(self.made):
            with contextlib.suppress(OSError), entered(self.copy, parts) as there:
                if there is not None:
                    os.utime(there, ns=(found.st_atime_ns, found.st_mtime_ns))

    def _folder(self, parts: Parts, pending: list[Parts]) -> Iterator[Piece]:
        with entered(self.top, parts) as here, entered(self.copy, parts) as there:
            if here is None:
                return
            for entry in sorted(os.listdir(here)):  # noqa: PTH208  a handle, not a path
                own = (*parts, entry)
                if self.stopping.is_set():
                    return
                try:
                    found = os.stat(entry, dir_fd=here, follow_symlinks=False)
                    if not stat.S_ISDIR(found.st_mode):
                        yield self._told(own, *self._entry(found, own, here, there))
                    elif there is None or self._ensure(own, found, there):
                        pending.append(own)
                    else:
                        yield self._told(own, Outcome.SKIPPED, _OTHER)
                except OSError as error:
                    yield self._told(own, Outcome.SKIPPED, _why(error))

    def _ensure(self, parts: Parts, found: os.stat_result, there: int) -> bool:
        """Whether a folder of this name is there now, or would be."""
        known = _look(parts[-1], there)
        if known is not None or self.is_dry_run:
            return known is None or stat.S_ISDIR(known.st_mode)
        os.mkdir(parts[-1], found.st_mode & _MODE | _OURS, dir_fd=there)
        with entered(there, parts[-1:]) as made:
            if made is not None:
                os.fchmod(made, found.st_mode & _MODE | _OURS)
                _give(made, there)
        self.made.append((parts, found))
        return True

    def _entry(
        self, found: os.stat_result, parts: Parts, here: int, there: int | None
    ) -> tuple[Outcome, str]:
        if stat.S_ISLNK(found.st_mode):
            return self._link(parts, here, there)
        if not stat.S_ISREG(found.st_mode):
            return Outcome.SKIPPED, "neither a file nor a folder"
        known = None if there is None else _look(parts[-1], there)
        if known is not None and there is not None:
            is_same = _is_same(parts[-1], here, there, found, known)
            return (Outcome.THERE, "") if is_same else (Outcome.SKIPPED, _OTHER)
        if there is not None and not self.is_dry_run:
            _copy(parts[-1], here, there, self.stopping)
        return Outcome.CARRIED, ""

    def _link(self, parts: Parts, here: int, there: int | None) -> tuple[Outcome, str]:
        leads = os.readlink(parts[-1], dir_fd=here)
        place = posixpath.normpath(posixpath.join(*parts[:-1], leads))
        if posixpath.isabs(leads) or place == ".." or place.startswith("../"):
            return Outcome.SKIPPED, _LEADS_OUT
        known = None if there is None else _look(parts[-1], there)
        if known is not None:
            is_same = stat.S_ISLNK(known.st_mode) and os.readlink(parts[-1], dir_fd=there) == leads
            return (Outcome.THERE, "") if is_same else (Outcome.SKIPPED, _OTHER)
        if there is not None and not self.is_dry_run:
            os.symlink(leads, parts[-1], dir_fd=there)
        return Outcome.CARRIED, ""

    def _told(self, parts: Parts, outcome: Outcome, why: str = "") -> Piece:
        return _piece((*self.name, *parts), outcome, why)


def _look(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _copy(name: str, here: int, there: int, stopping: Event) -> None:
    """Written aside and linked in: that fails where a rename would replace."""
    aside = f".{name[:64]}.importing"
    with contextlib.suppress(FileNotFoundError):  # of an import that was cut short
        os.unlink(aside, dir_fd=there)
    with open_file(name, here) as source:
        copy = os.fdopen(os.open(aside, _NEW_FILE, 0o600, dir_fd=there), "wb")
        try:
            with copy:
                _fill(copy, source, there, stopping)
            os.link(aside, name, src_dir_fd=there, dst_dir_fd=there, follow_symlinks=False)
        finally:
            os.unlink(aside, dir_fd=there)


def _fill(copy: BinaryIO, source: BinaryIO, there: int, stopping: Event) -> None:
    found = os.fstat(source.fileno())
    while chunk := source.read(_CHUNK):
        copy.write(chunk)
        if stopping.is_set():
            raise OSError(errno.ECANCELED, "the import was ended")
    copy.flush()
    os.fchmod(copy.fileno(), found.st_mode & _MODE)
    _give(copy.fileno(), there)
    os.utime(copy.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))


def _give(made: int, folder: int) -> None:
    """To whom its folder belongs: an agent may run there under its own uid."""
    owner = os.fstat(folder)
    if owner.st_uid != os.geteuid():
        os.fchown(made, owner.st_uid, owner.st_gid)


def _is_same(
    name: str, here: int, there: int, found: os.stat_result, known: os.stat_result
) -> bool:
    if not stat.S_ISREG(known.st_mode) or found.st_size != known.st_size:
        return False
    if found.st_mtime_ns == known.st_mtime_ns:
        return True
    with open_file(name, here) as one, open_file(name, there) as other:
        while chunk := one.read(_CHUNK):
            if other.read(_CHUNK) != chunk:
                return False
    return True


def _piece(parts: Parts, outcome: Outcome, why: str = "") -> Piece:
    # A file's name need not be text.
    name = "/".join(parts).encode("utf-8", "replace").decode("utf-8")
    return Piece(noun=Noun.FILES, name=name, outcome=outcome, why=why)


def _why(error: OSError) -> str:
    return f"it cannot be copied: {error.strerror or error}"
