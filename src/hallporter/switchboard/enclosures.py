"""Files that go along with messages: fetched from an agent's folder, and handed to readers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from hallporter.domain.enclosure import Enclosure, media_type, place_of
from hallporter.domain.errors import NotFoundError
from hallporter.domain.ids import EnclosureId

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from hallporter.domain.enclosure import FilePlace
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId, Folder, NewId
    from hallporter.ports import Store


_IN_HAND = timedelta(hours=1)  # a file is copied before its message is written


class Shelf(Protocol):
    """Where the bytes lie: out of every agent's reach."""

    async def keep(self, place: FilePlace, group: Folder, folder: Folder, id: EnclosureId) -> int:
        """A copy of a group's file, under a folder of ours; its size. Raises `RefusedError` with a
        sentence for the agent."""
        ...

    async def find(self, file: Enclosure) -> Path | None: ...
    async def discard(self, file: Enclosure) -> None: ...
    async def sweep(
        self, known: frozenset[EnclosureId], *, before: datetime | None, lost_before: datetime
    ) -> int:
        """Those kept before a time go, and before another those that nobody knows; how many."""
        ...


class Enclosures:
    """The use cases behind `file` of a message, and behind its link."""

    def __init__(self, *, store: Store, shelf: Shelf, new_id: NewId) -> None:
        self._store = store
        self._shelf = shelf
        self._new_id = new_id

    async def fetch(self, group: Group, folder: Folder, path: str) -> Enclosure:
        """A copy of what an agent calls by this path, for the chat of the group that has `folder`.
        Raises `RefusedError` with a sentence for it."""
        place = place_of(path, is_main=group.is_main)
        id = EnclosureId(self._new_id("f"))
        size = await self._shelf.keep(place, group.folder, folder, id)
        return Enclosure(
            id=id, folder=folder, name=place.name, size=size, type=media_type(place.name)
        )

    async def discard(self, file: Enclosure) -> None:
        """Its message did not come about."""
        await self._shelf.discard(file)

    async def find(self, chat: ChatId, id: str) -> tuple[Enclosure, Path]:
        """A file of this chat, and its bytes. Raises `NotFoundError`."""
        files = await self._store.read(lambda tx: tx.messages.files(chat))
        file = next((one for one in files if one.id == id), None)
        if file is None:
            raise NotFoundError(f"no file {id[:80]!r} in this chat", id=id[:80])
        path = await self._shelf.find(file)
        if path is None:
            raise NotFoundError(f"the file {file.name!r} is no longer kept", id=id)
        return file, path

    async def sweep(self, now: datetime, before: datetime | None) -> int:
        """Those kept before a time go, and those whose message is gone or never came about."""
        known = await self._store.read(lambda tx: frozenset(one.id for one in tx.messages.files()))
        return await self._shelf.sweep(known, before=before, lost_before=now - _IN_HAND)
