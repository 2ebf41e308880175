"""Folders from elsewhere that an agent is to see: what is asked for, and what is granted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MAX_MOUNTS = 64
MAX_PATH = 4096  # characters
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEYS = frozenset({"path", "name", "writable"})

BLOCKED = (
    *(".ssh", ".gnupg", ".gpg", ".aws", ".azure", ".gcloud", ".kube", ".docker", "credentials"),
    *(".env", ".netrc", ".npmrc", ".pypirc", "id_rsa", "id_ed25519", "private_key", ".secret"),
)
"""What no path may have in it, whatever the allow-list says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraMount:
    """As it is asked for: a path of this machine, shown as `/workspace/extra/NAME`."""

    path: str
    name: str
    writable: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.name}{':rw' if self.writable else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder below which things may be shown; its links are followed to the end."""

    path: Path
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The operator's allow-list; `blocked` comes on top of what is always blocked."""

    roots: tuple[Root, ...]
    blocked: tuple[str, ...] = ()
    non_main_read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """`note` says why it is not writable although that was asked for."""

    source: Path
    name: str
    writable: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """Not to be shown."""

    why: str


def parse_mount(value: object) -> ExtraMount:
    """From `PATH[:NAME][:rw]` or `{path, name?, writable?}`, or an error that says what fits."""
    match value:
        case str():
            return _from_text(value)
        case Mapping():
            return _from_fields(value)
        case _:
            raise _unfit("write PATH[:NAME][:rw] or {path, name?, writable?}", value)


def check_mounts(mounts: Sequence[ExtraMount]) -> tuple[ExtraMount, ...]:
    """The list as a whole: names are unique."""
    if len(mounts) > MAX_MOUNTS:
        raise _unfit(f"at most {MAX_MOUNTS} mounts", len(mounts))
    names = [mount.name for mount in mounts]
    for name in names:
        if names.count(name) > 1:
            raise _unfit(f"two mounts have the name '{name}': give one another, PATH:NAME", name)
    return tuple(mounts)


def decide(
    ask: ExtraMount,
    source: Path,
    allowance: Allowance,
    *,
    protected: Iterable[Path],
    is_main: bool,
) -> Granted | Denied:
    """Whether `source`, where the asked path leads to in the end, may be shown, and how.

    What is `protected` is never shown, nor anything in it, nor anything it lies in.
    """
    for own in protected:
        if source.is_relative_to(own) or own.is_relative_to(source):
            return Denied("Hallporter keeps its own things there")
    for pattern in (*BLOCKED, *allowance.blocked):
        if pattern.casefold() in str(source).casefold():
            return Denied(f"'{pattern}' in a path is blocked")
    roots = [root for root in allowance.roots if source.is_relative_to(root.path)]
    if not roots:
        return Denied("it lies below none of the allowed roots")
    # The closest root speaks for what lies below it; of two that are the same, the stricter one.
    closest = max(len(root.path.parts) for root in roots)
    is_root_writable = all(root.writable for root in roots if len(root.path.parts) == closest)
    note = ""
    if ask.writable and not is_root_writable:
        note = "its allowed root is read-only"
    elif ask.writable and not is_main and allowance.non_main_read_only:
        note = "only main may write to extra mounts"
    return Granted(source=source, name=ask.name, writable=ask.writable and not note, note=note)


def _from_text(text: str) -> ExtraMount:
    path, *rest = text.split(":")
    is_writable = bool(rest) and rest[-1] == "rw"
    if rest and rest[-1] in ("rw", "ro"):
        rest.pop()
    if len(rest) > 1:
        raise _unfit("PATH[:NAME][:rw] has too many colons: use {path = …, name = …}", text)
    return _checked(path, rest[0] if rest else None, is_writable=is_writable)


def _from_fields(fields: Mapping[object, object]) -> ExtraMount:
    if unknown := [str(key) for key in fields if key not in _KEYS]:
        raise _unfit(f"there is no '{unknown[0]}' in a mount: use path, name, writable", unknown[0])
    path, name = fields.get("path"), fields.get("name")
    is_writable = fields.get("writable", False)
    if not isinstance(path, str):
        raise _unfit("a mount needs its path", path)
    if name is not None and not isinstance(name, str):
        raise _unfit("a mount's name is text", name)
    if not isinstance(is_writable, bool):
        raise _unfit("writable is true or false", is_writable)
    return _checked(path, name, is_writable=is_writable)


def _checked(path: str, name: str | None, *, is_writable: bool) -> ExtraMount:
    if not path.startswith(("/", "~/")) or len(path) > MAX_PATH or not path.isprintable():
        raise _unfit("a mount's path begins with '/' or '~/'", path)
    shown = path.rstrip("/").rpartition("/")[2] if name is None else name
    if _NAME.fullmatch(shown) is None or shown in (".", ".."):
        allowed = "letters, digits, '.', '_' and '-', up to 64"
        raise _unfit(f"a mount's name has {allowed}: write PATH:NAME", shown)
    return ExtraMount(path=path, name=shown, writable=is_writable)


def _unfit(message: str, value: object) -> InvalidRequestError:
    return InvalidRequestError(message, field="mounts", value=str(value)[:80])
