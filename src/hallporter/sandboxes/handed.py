"""Open files that a child inherits: what is in them appears in no process list, and what they are
cannot be exchanged for something else."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Handed:
    """Closed on this side when the block ends: by then the child has its own."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def file(self, content: bytes) -> int:
        """A file to read once, from its beginning."""
        descriptor = self._keep(os.memfd_create("handed"))
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def words(self, words: Iterable[str]) -> int:
        """Arguments in the form of bubblewrap's --args."""
        return self.file(b"".join(os.fsencode(word) + b"\0" for word in words))

    def pipe(self) -> tuple[int, int]:
        """The end to read from, which is the caller's to close, and the one that is handed."""
        ours, theirs = os.pipe()
        return ours, self._keep(theirs)

    def place(self, path: Path) -> int:
        """A file or folder by an absolute path in which nothing is a link; raises OSError."""
        with ExitStack() as passed:
            here = os.open("/", _PLACE | os.O_DIRECTORY)
            passed.callback(os.close, here)
            *above, last = path.parts[1:]
            for name in above:
                here = os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=here)
                passed.callback(os.close, here)
            place = self._keep(os.open(last, _PLACE, dir_fd=here))
        if stat.S_ISLNK(os.fstat(place).st_mode):
            raise NotADirectoryError(f"{path} is a link")
        return place

    def _keep(self, descriptor: int) -> int:
        self._open.callback(os.close, descriptor)
        self.descriptors.append(descriptor)
        return descriptor
