"""The input folder: follow-ups are taken up in name order, and taking one up deletes it."""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from typing import TYPE_CHECKING

from hallporter_wire.errors import WireError
from hallporter_wire.follow_up import CLOSE, Close, FollowUp, decode_follow_up

if TYPE_CHECKING:
    from pathlib import Path

_POLL = 0.5  # seconds; what remains where the kernel reports nothing, as on some shared folders
_IN_CLOSE_WRITE, _IN_MOVED_TO = 0x8, 0x80  # linux/inotify.h
_EVENTS = 64 * 1024  # bytes


class Closed(Exception):  # noqa: N818 - an ending, not an error
    """The host has said that no more will come."""


class HostGone(Exception):  # noqa: N818 - as above
    """Nobody reads our output any more."""


class Inbox:
    """One folder, watched; `output` is watched with it, since a runner without a host must end."""

    def __init__(self, folder: Path, *, output: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._output = output
        self._poll = select.poll()
        self._poll.register(output, 0)
        self._watch = _watch(folder)
        if self._watch is not None:
            self._poll.register(self._watch, select.POLLIN)

    def wait(self, seconds: float | None) -> tuple[FollowUp, ...]:
        """All that lies here as soon as something does; empty when the time is over.

        Raises Closed, and then leaves everything untaken, for the next agent.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            taken = self._take()
            left = _POLL if deadline is None else min(_POLL, deadline - time.monotonic())
            if taken or left <= 0:
                return taken
            self._sleep(left)

    def _sleep(self, seconds: float) -> None:
        for source, _ in self._poll.poll(seconds * 1000):
            if source == self._output:
                raise HostGone
            os.read(source, _EVENTS)

    def _take(self) -> tuple[FollowUp, ...]:
        names = sorted(os.listdir(self._folder))  # noqa: PTH208 - twice a second, for hours
        if CLOSE in names:
            (self._folder / CLOSE).unlink()
            raise Closed
        waiting: dict[Path, FollowUp] = {}
        for path in (self._folder / name for name in names if name.endswith(".json")):
            if not path.is_file():
                continue
            try:
                read = decode_follow_up(path.read_bytes())
            except WireError as error:
                print(f"input file {path.name} was thrown away: {error}", file=sys.stderr)
                path.unlink()
                continue
            if isinstance(read, Close):
                path.unlink()
                raise Closed
            waiting[path] = read
        for path in waiting:
            path.unlink()
        return tuple(waiting.values())


def _watch(folder: Path) -> int | None:
    """A descriptor that becomes readable when a file is complete, where the system has them."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        watch: int = libc.inotify_init1(os.O_CLOEXEC)
        added: int = libc.inotify_add_watch(
            watch, os.fsencode(folder), _IN_CLOSE_WRITE | _IN_MOVED_TO
        )
    except (OSError, AttributeError):
        return None
    if added >= 0:
        return watch
    if watch >= 0:
        os.close(watch)
    return None
