"""Noticing requests the moment they come, at no cost while none comes."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.command import Box
from hallporter.mailroom.claims import is_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inotify_simple import Event, INotify

    from hallporter.domain.ids import Folder
    from hallporter.mailroom.folders import Folders

log = structlog.get_logger(__name__)

# A request is there when it is renamed in, or when whoever wrote it in place closes it.
_COMES = 0x00000080 | 0x00000008  # IN_MOVED_TO, IN_CLOSE_WRITE
_GOES = 0x00000400 | 0x00000800 | 0x00008000  # IN_DELETE_SELF, IN_MOVE_SELF, IN_IGNORED
_ONLY = 0x01000000 | 0x02000000  # IN_ONLYDIR, IN_DONT_FOLLOW
_OVERFLOW = 0x00004000  # IN_Q_OVERFLOW


class Watch:
    """The kernel tells of new files in the boxes. Where it does not (no inotify here, or its limit
    is reached), `unwatched` says so, and someone must look from time to time."""

    def __init__(
        self,
        folders: Folders,
        stir: Callable[[Folder], None],
        ask_kernel: Callable[[], INotify] | None = None,
    ) -> None:
        self._folders = folders
        self._stir = stir
        self._ask_kernel = ask_kernel or _inotify
        self._inotify: INotify | None = None
        self._of_watch: dict[int, Folder] = {}
        self._watches: dict[Folder, list[int]] = {}  # the least recently needed first
        self._unwatched: dict[Folder, None] = {}

    @property
    def unwatched(self) -> Sequence[Folder]:
        return list(self._unwatched)

    def has(self, folder: Folder) -> bool:
        return folder in self._watches

    def open(self) -> None:
        """From now on the event loop hears of it."""
        try:
            self._inotify = self._ask_kernel()
        except (ImportError, OSError) as error:
            log.warning("mail.unwatched", why=str(error))
            return
        asyncio.get_running_loop().add_reader(self._inotify.fileno(), self._heard)

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None

    def add(self, folder: Folder, *, is_needed: bool = False) -> bool:
        """Watch a folder; False when its boxes are not there. One that is needed now takes the
        place of the one that was not for longest, when the kernel allows no more."""
        if folder in self._watches:
            if is_needed:
                self._watches[folder] = self._watches.pop(folder)
            return True
        try:
            self._try(folder)
            if is_needed and folder in self._unwatched and self._watches:
                resigned = next(iter(self._watches))
                self.remove(resigned)
                self._unwatched[resigned] = None
                self._try(folder)
        except OSError:
            return False
        return True

    def remove(self, folder: Folder) -> None:
        """No more of this folder."""
        self._unwatched.pop(folder, None)
        for watch in self._watches.pop(folder, ()):
            self._of_watch.pop(watch, None)
            if self._inotify is not None:
                try:
                    self._inotify.rm_watch(watch)
                except OSError:
                    log.debug("mail.watch_was_gone", folder=folder)

    def _try(self, folder: Folder) -> None:
        """Raises OSError unless it is the kernel that cannot."""
        if self._inotify is None:
            self._unwatched[folder] = None
            return
        self._watches[folder] = []
        try:
            for box in Box:
                path = self._folders.path(folder, box)
                watch = self._inotify.add_watch(path, _COMES | _GOES | _ONLY)
                self._of_watch[watch] = folder
                self._watches[folder].append(watch)
        except OSError as error:
            was_known = folder in self._unwatched
            self.remove(folder)
            if error.errno != errno.ENOSPC:
                raise
            self._unwatched[folder] = None
            if not was_known:
                log.warning("mail.unwatched", folder=folder, why="the kernel's limit is reached")
            return
        self._unwatched.pop(folder, None)

    def _heard(self) -> None:
        if self._inotify is None:
            return
        for event in self._inotify.read(timeout=0):
            self._take(event)

    def _take(self, event: Event) -> None:
        if event.mask & _OVERFLOW:
            log.warning("mail.watch_overflowed")
            for watched in self._watches:
                self._stir(watched)
            return
        folder = self._of_watch.get(event.wd)
        if folder is None:
            return
        if event.mask & _GOES:
            # The agent has removed or replaced a box: whoever looks next puts it right.
            self.remove(folder)
            self._stir(folder)
        elif is_request(event.name):
            self._stir(folder)


def _inotify() -> INotify:
    from inotify_simple import INotify  # noqa: PLC0415  only Linux has it

    return INotify(nonblocking=True)
