"""What a backup says of itself: where it comes from, what is in it, and the sum of each file."""

from __future__ import annotations

import json
import posixpath
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from hallporter.domain.errors import CorruptInputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "hallporter.db"
TREES = ("groups", "data/sessions", "data/media", "store", "policy")
FILES = ("hallporter.toml", ".env")
DEEPEST = 100  # folders in folders: whoever goes through them holds each one open
_MOST_LINKS = 40  # on the way of one link; the kernel gives up there as well
_LONGEST_TARGET = 4095  # bytes that the kernel takes
ASIDE = ".forgotten-"  # how the name of a folder begins that is about to be removed for good


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file, as it was read."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`rows` counts the tables of the database; `left_out` says what was not taken, and why."""

    version: str
    made_at: str
    schema: int
    rows: Mapping[str, int]
    members: Sequence[Member]
    left_out: Mapping[str, str]
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Of all files, in bytes."""
        return sum(member.size for member in self.members)


def encode_manifest(manifest: Manifest) -> bytes:
    return json.dumps(asdict(manifest), indent=1).encode()


def decode_manifest(data: bytes) -> Manifest:
    """Raises `CorruptInputError`."""
    try:
        fields = json.loads(data)
        if fields["format"] != FORMAT:
            message = f"the backup has the form {fields['format']!s:.20}, this version reads"
            raise CorruptInputError(f"{message} {FORMAT}: use the version that wrote it")
        members = tuple(Member(**member) for member in fields.pop("members"))
        manifest = Manifest(members=members, **fields)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptInputError(f"the backup's manifest cannot be read: {error}") from error
    if not _is_sound(asdict(manifest)):
        raise CorruptInputError("the backup's manifest cannot be read: its values are of no use")
    return manifest


def is_ours(name: str) -> bool:
    """Whether a member may have this name: below one of our folders, and never out of it."""
    if name in (*FILES, DATABASE, MANIFEST):
        return True
    is_plain = posixpath.normpath(name) == name and not name.startswith("/") and "\0" not in name
    return is_plain and _tree_of(f"{name}/") is not None


def stays_inside(name: str, links: Mapping[str, str]) -> bool:
    """Whether a link really leads to something in the same folder of a group, or of a session:
    along every one of `links` that it meets, and at no step out of that folder."""
    tree = _tree_of(name)
    if tree is None:
        return False
    *here, last = name.split("/")
    depth = tree.count("/") + 2
    folder = [*here, last][:depth]
    ahead, followed = [last], 0
    while ahead:
        step = ahead.pop()
        if step == "..":
            here.pop()
        elif step not in ("", "."):
            here.append(step)
            target = links.get("/".join(here))
            if target is not None:
                here.pop()
                followed += 1
                if followed > _MOST_LINKS or not _is_relative(target):
                    return False
                ahead += reversed(target.split("/"))
        # The depth is looked at, too: a way that grows for ever is none.
        if here[:depth] != folder or len(here) > depth + DEEPEST:
            return False
    return True


def _tree_of(name: str) -> str | None:
    return next((tree for tree in TREES if name.startswith(f"{tree}/")), None)


def _is_relative(target: str) -> bool:
    return 0 < len(target) <= _LONGEST_TARGET and not target.startswith("/") and "\0" not in target


def _is_sound(fields: Mapping[str, object]) -> bool:
    """JSON has other ideas of what may stand where."""
    kinds = {"version": str, "made_at": str, "schema": int}
    maps = {"rows": int, "left_out": str}
    parts = {"name": str, "size": int, "sha256": str}
    return (
        all(isinstance(fields[name], kind) for name, kind in kinds.items())
        and all(_maps(fields[name], kind) for name, kind in maps.items())
        and all(
            isinstance(member[name], kind)
            for member in cast("Sequence[Mapping[str, object]]", fields["members"])
            for name, kind in parts.items()
        )
    )


def _maps(value: object, kind: type) -> bool:
    return isinstance(value, dict) and all(isinstance(one, kind) for one in value.values())
