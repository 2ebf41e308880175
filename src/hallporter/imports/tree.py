"""Copying a folder that agents have written to: never along links, and never over what is there."""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hallporter.domain.import_report import Noun, Outcome, Piece

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Parts = tuple[str, ...]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe would wait for someone to write into it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700
_MODE = 0o777  # what is kept of a mode: nobody becomes someone else by an import
_CHUNK = 1 << 20  # bytes
_OTHER = "another one of this name is there already, and stays"
_LEADS_OUT = "a link that leads out of its folder"


def count_files(source: Path) -> int:
    """How many `copied` will tell of, more or less."""
    return sum(len(files) for _, _, files in os.walk(source))


def copied(source: Path, target: Path, name: str, *, is_dry_run: bool) -> Iterator[Piece]:
    """Each file of `source`, with its mode and time; `name` is how the folder is called. A file
    comes whole or not at all, so an import that was cut short can be repeated."""
    try:
        top = os.open(source, _FOLDER)
    except FileNotFoundError:
        return
    except OSError as error:
        yield _piece((name,), Outcome.SKIPPED, _why(error))
        return
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, top)
        copy: int | None = None
        try:
            if not is_dry_run:
                with contextlib.suppress(FileExistsError):
                    target.mkdir(parents=True)
            copy = os.open(target, _FOLDER)
            stack.callback(os.close, copy)
        except FileNotFoundError:
            pass  # a dry run, into a folder that is still to be made
        except OSError as error:
            yield _piece((name,), Outcome.SKIPPED, _why(error))
            return
        yield from _Copying(top=top, copy=copy, name=name, is_dry_run=is_dry_run).all()


@dataclass(slots=True, kw_only=True)
class _Copying:
    """Two folders side by side; `copy` is None when there is none, in a dry run."""

    top: int
    copy: int | None
    name: str
    is_dry_run: bool
    made: list[tuple[Parts, os.stat_result]] = field(default_factory=list)

    def all(self) -> Iterator[Piece]:
        """One open folder at a time on each side, so that no depth can exhaust us."""
        pending: list[Parts] = [()]
        while pending:
            parts = pending.pop()
            try:
                yield from self._folder(parts, pending)
            except OSError as error:
                yield self._told(parts, Outcome.SKIPPED, _why(error))
        for parts, found in reversed(self.made):
            with contextlib.suppress(OSError), _at(self.copy, parts) as there:
                if there is not None:
                    os.utime(there, ns=(found.st_atime_ns, found.st_mtime_ns))

    def _folder(self, parts: Parts, pending: list[Parts]) -> Iterator[Piece]:
        with _at(self.top, parts) as here, _at(self.copy, parts) as there:
            if here is None:
                return
            for entry in sorted(os.listdir(here)):  # noqa: PTH208  a handle, not a path
                own = (*parts, entry)
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
        with _at(there, parts[-1:]) as made:
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
            _copy(parts[-1], here, there)
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
        return _piece((self.name, *parts), outcome, why)


@contextlib.contextmanager
def _at(top: int | None, parts: Parts) -> Iterator[int | None]:
    """Down step by step, never along a link; None when it is not there."""
    if top is None:
        yield None
        return
    here = os.dup(top)
    try:
        for part in parts:
            there = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = there
    except FileNotFoundError:
        os.close(here)
        yield None
        return
    except OSError:
        os.close(here)
        raise
    try:
        yield here
    finally:
        os.close(here)


def _look(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _copy(name: str, here: int, there: int) -> None:
    """Written aside and linked in: that fails where a rename would replace."""
    aside = f".{name[:64]}.importing"
    with contextlib.suppress(FileNotFoundError):  # of an import that was cut short
        os.unlink(aside, dir_fd=there)
    with os.fdopen(os.open(name, _FILE, dir_fd=here), "rb") as source:
        found = os.fstat(source.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it changed while it was read", name)
        with os.fdopen(os.open(aside, _NEW_FILE, 0o600, dir_fd=there), "wb") as copy:
            while chunk := source.read(_CHUNK):
                copy.write(chunk)
            copy.flush()
            os.fchmod(copy.fileno(), found.st_mode & _MODE)
            _give(copy.fileno(), there)
            os.utime(copy.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
    try:
        os.link(aside, name, src_dir_fd=there, dst_dir_fd=there, follow_symlinks=False)
    finally:
        os.unlink(aside, dir_fd=there)


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
    with (
        os.fdopen(os.open(name, _FILE, dir_fd=here), "rb") as one,
        os.fdopen(os.open(name, _FILE, dir_fd=there), "rb") as other,
    ):
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
