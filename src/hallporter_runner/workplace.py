"""Where an agent works: the folders the host has mounted, and the name of the box around them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """The mounts below one root; `sandbox` is empty when the host does not name it."""

    root: Path
    sandbox: str = ""

    @property
    def group(self) -> Path:
        """The group's own folder, kept between turns."""
        return self.root / "group"

    @property
    def ipc(self) -> Path:
        """The files between this agent and the host."""
        return self.root / "ipc"

    @property
    def input(self) -> Path:
        """Where the host puts follow-ups."""
        return self.ipc / "input"


def surrounding_workplace() -> Workplace:
    """The workplace this process was started in."""
    return Workplace(
        root=Path(os.environ.get("HALLPORTER_WORKSPACE", "/workspace")),
        sandbox=os.environ.get("HALLPORTER_SANDBOX", ""),
    )
