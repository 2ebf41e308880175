"""Open files that a child inherits, so that what is in them appears in no process list."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType


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

    def _keep(self, descriptor: int) -> int:
        self._open.callback(os.close, descriptor)
        self.descriptors.append(descriptor)
        return descriptor
