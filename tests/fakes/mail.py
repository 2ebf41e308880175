"""A mailroom that notes what it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.brief import Snapshots

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hallporter.domain.group import Group
    from hallporter.domain.ids import Folder


class FakeMail:
    """`ports.Mail`; `lying` is what a drain finds in a folder and carries out."""

    def __init__(self) -> None:
        self.snapshots = Snapshots()
        self.announced: list[Folder] = []
        self.drained: list[Folder] = []
        self.lying: list[Callable[[], Awaitable[object]]] = []

    async def announce(self, group: Group) -> Snapshots:
        self.announced.append(group.folder)
        return self.snapshots

    async def drain(self, group: Group) -> None:
        self.drained.append(group.folder)
        while self.lying:
            await self.lying.pop(0)()
