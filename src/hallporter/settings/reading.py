"""What one source says, before it is judged."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hallporter.settings.keys import dotted, holds_secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hallporter.settings.keys import Path
    from hallporter.settings.kinds import Kind, NotAllowedError
    from hallporter.settings.origin import Origin

_LONGEST_SHOWN = 80  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One value and how it was `written`, before variables were filled in: they may hold a
    secret. Without a kind its own channel judges it."""

    value: object
    written: object
    origin: Origin
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Filled by its reader: what was found, what to mind, what is wrong."""

    found: dict[Path, Found] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def shown(path: Path, value: object) -> str:
    """A value in a message: short, and never a secret."""
    if holds_secret(path):
        return "the value"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def wrong(what: str, allowed: str, error: NotAllowedError | None = None) -> str:
    """The sentence about a wrong value."""
    why = f"{error}; " if error is not None and str(error) else ""
    return f"{what} is not allowed: {why}use {allowed}"


def told(path: Path, text: str, origin: Origin) -> str:
    """A key, its value and where that came from."""
    return f"{dotted(path)}: {text} from {origin}"


def hint(name: str, known: Iterable[str]) -> str:
    """What may have been meant."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known are {', '.join(names)}"
