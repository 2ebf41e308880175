"""Which sandbox a setting means: a decision over what was seen to work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.domain.brief import Fitness

AUTO = "auto"
# A plain process protects nothing, so it is never chosen: only named.
STRONGEST_FIRST = ("docker", "podman", "bubblewrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The sandbox to use, and why this one."""

    name: str
    why: str


def choose(name: str, fitness: Mapping[str, Fitness]) -> Choice:
    """`auto` is the strongest that works here; another name is taken at its word, or refused."""
    if name == AUTO:
        return _strongest(fitness)
    if name not in fitness:
        raise AgentRefusedError(
            f"There is no sandbox '{name}': use {AUTO} or one of {', '.join(sorted(fitness))}.",
            sandbox=name,
            setting="sandbox",
        )
    if not fitness[name].works:
        raise AgentRefusedError(
            f"The sandbox '{name}' does not work here: {fitness[name].problem}",
            sandbox=name,
            setting="sandbox",
        )
    return Choice(name=name, why="named in the settings")


def _strongest(fitness: Mapping[str, Fitness]) -> Choice:
    passed_over: list[str] = []
    for name in STRONGEST_FIRST:
        if name not in fitness:
            continue
        if fitness[name].works:
            why = "the strongest that works here"
            return Choice(name=name, why="; ".join([why, *passed_over]))
        passed_over.append(f"{name} does not: {fitness[name].problem}")
    raise AgentRefusedError(
        " ".join(
            [
                "No sandbox works here.",
                *(f"{told[0].upper()}{told[1:].rstrip('.')}." for told in passed_over),
                'Mend one of them, or set sandbox = "process" to run agents without protection.',
            ]
        ),
        setting="sandbox",
    )
