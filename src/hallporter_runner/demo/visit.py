"""One request to the demo agent, and the answer it gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hallporter_runner.demo.conversation import Talk
from hallporter_runner.toolset import Toolset
from hallporter_runner.workplace import Workplace

END = r"\s*[.!?؟。]*"  # how a request may end


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Everything an answer may depend on; in a task nobody waits in the chat."""

    name: str
    talk: Talk
    seen: int
    workplace: Workplace
    toolset: Toolset
    folder: str
    is_main: bool = False
    is_task: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to say, in one or more parts; none is silence. First comes work of some seconds."""

    parts: tuple[str, ...]
    seconds: float = 0


# None: the words fit, but not what they mean.
Skill: TypeAlias = Callable[[Visit, re.Match[str]], Answer | None]


def say(*parts: str, seconds: float = 0) -> Answer:
    """An answer of these parts."""
    return Answer(parts=parts, seconds=seconds)
