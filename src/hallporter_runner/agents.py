"""The seam to the kinds of agents: what one is, and where each is found."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter_runner.desk import Desk
    from hallporter_runner.workplace import Workplace
    from hallporter_wire.stdin import AgentInput

# Looked up by name, so that a kind with heavy libraries costs the others nothing.
KINDS = {"demo": "hallporter_runner.demo.agent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Prompts taken up together, oldest first."""

    prompts: tuple[str, ...]


class Agent(Protocol):
    """Who answers."""

    def answer(self, batch: Batch, desk: Desk) -> None:
        """Answer the batch through the desk: at least one reply, or an exception."""
        ...


class AgentError(Exception):
    """The agent cannot answer; the message is a sentence for the chat's owner."""


def open_agent(kind: str, start: AgentInput, workplace: Workplace) -> Agent:
    """The agent of a kind: its module has `open_agent(start, workplace)`."""
    opener = cast("Callable[[AgentInput, Workplace], Agent]", import_module(KINDS[kind]).open_agent)
    return opener(start, workplace)
