"""What an agent is given, and what comes back from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta
    from pathlib import Path

    from hallporter.domain.extra_mount import ExtraMount
    from hallporter.domain.group import Group
    from hallporter.domain.ids import AgentId, ChatId, TurnId
    from hallporter.domain.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Who answers a group and in what box; every value resolved."""

    kind: str
    sandbox: str
    command: tuple[str, ...] = ()
    image: str = ""
    network: str = "gate"
    timeout: timedelta
    idle_timeout: timedelta
    memory: int | None = None  # bytes
    pids: int | None = None
    cpus: float | None = None
    mounts: tuple[ExtraMount, ...] = ()  # as they are asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message as the agent reads it."""

    id: str
    at: datetime
    sender: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Messages given together; `through` is the highest sequence number among them."""

    lines: tuple[Line, ...]
    through: int
    omitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """What a group may know of tasks and groups, as the JSON of its files."""

    tasks: str = "[]"
    groups: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """Everything an agent needs for one turn; with a task it is a tick's, and has no lines."""

    turn: TurnId
    chat: ChatId
    group: Group
    settings: AgentSettings
    batch: Batch
    epoch: int
    attempt: int
    session_no: int
    session_id: str | None
    assistant_name: str
    now: datetime
    timezone: str
    task: Task | None = None
    snapshots: Snapshots = field(default_factory=Snapshots)
    sent: tuple[str, ...] = ()  # by earlier attempts, in messages of their own (R13)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One result. `through` and `idle` are always set here: the agents room works them out."""

    is_error: bool
    text: str | None
    session_id: str | None
    error: str
    through: int
    idle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The agent is gone; `taken` is the highest number it had taken up."""

    code: int
    taken: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LateBlock:
    """Words from an agent whose turn is over (R8)."""

    agent: AgentId
    number: int
    chat: ChatId
    epoch: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host path as the sandbox sees it; a foreign one is the operator's and keeps its owner."""

    source: Path
    target: str
    writable: bool
    is_foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a sandbox may use; None means no limit."""

    memory: int | None = None  # bytes
    pids: int | None = None
    cpus: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One program to run in a box. Its name is unique on this machine."""

    name: AgentId
    argv: tuple[str, ...]
    mounts: tuple[Mount, ...]
    workdir: str
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitness:
    """What a sandbox can do here: `problem` empty means it works; the rest is said, not hidden."""

    problem: str = ""
    unenforced: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def works(self) -> bool:
        """Whether agents can run in it."""
        return not self.problem
