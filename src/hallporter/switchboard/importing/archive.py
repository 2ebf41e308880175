"""What another system has left, as an import needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hallporter.domain.foreign import (
        ForeignChat,
        ForeignGroup,
        ForeignHouse,
        ForeignMessage,
        ForeignRun,
        ForeignTask,
        Unread,
    )
    from hallporter.domain.ids import Folder
    from hallporter.domain.import_report import Piece


class Archive(Protocol):
    """Only read; what is no sense in it is handed in as such, and hinders nothing else. Its
    iterators are used on other threads, one at a time, and end soon when whoever opened it wants an
    end."""

    @property
    def source(self) -> str:
        """Where it lies, for people."""
        ...

    def house(self) -> ForeignHouse: ...
    def size(self, folders: Mapping[str, Folder]) -> int:
        """How many messages, runs and files there are, more or less."""
        ...

    def chats(self) -> Iterator[ForeignChat | Unread]: ...
    def groups(self) -> Iterator[ForeignGroup | Unread]: ...
    def tasks(self) -> Iterator[ForeignTask | Unread]: ...
    def runs(self) -> Iterator[ForeignRun | Unread]: ...
    def messages(self) -> Iterator[ForeignMessage | Unread]:
        """In the order in which they were said."""
        ...

    def files(self, folders: Mapping[str, Folder], *, is_dry_run: bool) -> Iterator[Piece]:
        """Copy the files of groups, by the folders they have here; nothing there is replaced."""
        ...

    def orphans(self, folders: Mapping[str, Folder]) -> Iterator[str]:
        """Folders that belong to none of these groups."""
        ...
