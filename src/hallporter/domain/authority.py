"""Who may ask for what: main may act on others, everyone else on themselves alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hallporter.domain.command import (
    Command,
    RefreshGroups,
    RegisterGroup,
    ScheduleTask,
    SendMessage,
    TaskControl,
)

if TYPE_CHECKING:
    from hallporter.domain.group import Group
    from hallporter.domain.ids import Folder

# What an agent may say of a new group's agent. Everything else (its program, its box, its mounts,
# who may talk to it) would let a sandbox write its own way out.
SETTABLE = frozenset({"timeout", "idle_timeout", "model", "effort", "max_turns"})
_EXCERPT = 80  # characters of a name in an answer

Reason: TypeAlias = str


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a command touches, as the store knows it; an unknown thing is None."""

    is_known_chat: bool = False  # the target
    target: Group | None = None  # the group of the target chat
    named: Group | None = None  # another group that the request says it is about
    owner: Folder | None = None  # of the task


def may(group: Group, command: Command, about: About) -> Reason | None:
    """None, or why not: a sentence for the agent that says what it may do instead.

    Whoever is not main learns nothing of others, not even whether they exist.
    """
    match command:
        case SendMessage():
            return _may_send(group, command, about)
        case RegisterGroup():
            return _may_register(group, command)
        case RefreshGroups():
            if not group.is_main:
                return "only the main group may refresh the list of groups: ask there"
            return None
        case ScheduleTask():
            return _may_name(group, command.folder, about) or _may_schedule(group, command, about)
        case _:
            return _may_name(group, command.folder, about) or _may_control(group, command, about)


def is_own(group: Group, folder: str | None) -> bool:
    """Whether a request that says this of itself speaks of its own group."""
    return folder is None or folder.casefold() == group.folder.casefold()


def _may_send(group: Group, command: SendMessage, about: About) -> Reason | None:
    if command.target is None or command.target == group.chat:
        return None
    if not group.is_main:
        return (
            "this group may write to its own chat only: leave the target out;"
            " the main group may write to others"
        )
    if not about.is_known_chat:
        return f"no chat {_named(command.target)} is known: the list of chats names those that are"
    return None


def _may_name(group: Group, folder: str | None, about: About) -> Reason | None:
    if is_own(group, folder):
        return None
    if not group.is_main:
        return (
            f"the folder {_named(folder)} is not this group's: leave it out,"
            f" or say '{group.folder}'"
        )
    if about.named is None:
        return (
            f"no group has the folder {_named(folder)}: the list of chats names those that one has"
        )
    return None


def _may_schedule(group: Group, command: ScheduleTask, about: About) -> Reason | None:
    if command.target is None:
        return None
    if not group.is_main:
        if command.target == group.chat:
            return None
        return (
            "this group may schedule tasks for its own chat only: leave the target out;"
            " the main group may schedule for others"
        )
    if about.target is None:
        return (
            f"chat {_named(command.target)} is not a registered group:"
            " register it first, or leave the target out"
        )
    if not is_own(group, command.folder) and about.named != about.target:
        return (
            f"chat {_named(command.target)} and folder {_named(command.folder)} are"
            " different groups: name one of them"
        )
    return None


def _may_control(group: Group, command: TaskControl, about: About) -> Reason | None:
    task = _named(command.task)
    if not group.is_main:
        if about.owner != group.folder:
            return f"this group has no task {task}: the list of tasks names those it has"
        return None
    if about.owner is None:
        return f"there is no task {task}: the list of tasks names all there are"
    if about.named is not None and about.owner != about.named.folder:
        return f"the group {about.named.folder!r} has no task {task}: leave the folder out"
    return None


def _may_register(group: Group, command: RegisterGroup) -> Reason | None:
    if not group.is_main:
        return "only the main group may register groups: ask there"
    refused = sorted(set(command.agent or ()) - SETTABLE)
    if refused:
        return (
            f"an agent may not set {', '.join(map(_named, refused))} of a group:"
            " register it without, and the operator sets that by `hallporter groups set`;"
            f" an agent may set {', '.join(sorted(SETTABLE))}"
        )
    return None


def _named(value: str | None) -> str:
    return repr((value or "")[:_EXCERPT])
