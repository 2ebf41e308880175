"""A folder of links that stands in for a box's file tree where there is no box."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentRefusedError
from hallporter.sandboxes.machine import HOME
from hallporter.sandboxes.mounts import parents_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.domain.brief import Mount

WORKSPACE = "/workspace"


class View:
    """`/workspace/group` of the box is `group` here, `/home/node` is `home/node`."""

    def __init__(self, folder: Path, mounts: Sequence[Mount]) -> None:
        self.folder = folder
        self._mounts = parents_first(mounts)
        self._shown = (WORKSPACE, HOME, *(mount.target for mount in mounts))

    def make(self) -> None:
        """Raises `AgentRefusedError` for a mount inside another: a link would change its source."""
        for outer, inner in pairwise(self._mounts):
            if PurePosixPath(inner.target).is_relative_to(outer.target):
                raise AgentRefusedError(
                    f"Without a box {inner.target} cannot be shown inside {outer.target}: "
                    "mount it elsewhere, or use another sandbox.",
                    target=inner.target,
                )
        Path(self.path(HOME)).mkdir(parents=True)
        for mount in self._mounts:
            link = Path(self.path(mount.target))
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(mount.source.absolute())

    def path(self, inside: str) -> str:
        """Where a path of the box is on this machine; others are what they are."""
        path = PurePosixPath(inside)
        if not any(path.is_relative_to(shown) for shown in self._shown):
            return inside
        root = WORKSPACE if path.is_relative_to(WORKSPACE) else "/"
        return str(self.folder / path.relative_to(root))

    def word(self, word: str) -> str:
        """An argument or a variable, with the box's paths in it (also behind colons) made ours."""
        return ":".join(self.path(part) for part in word.split(":"))

    def remove(self) -> None:
        """The links, never what they lead to."""
        shutil.rmtree(self.folder, ignore_errors=True)
