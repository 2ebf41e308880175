"""What a backup says of itself: where it comes from, what is in it, and the sum of each file."""

from __future__ import annotations

import json
import posixpath
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hallporter.domain.errors import CorruptInputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "hallporter.db"
TREES = ("groups", "data/sessions", "data/media", "store", "policy")
FILES = ("hallporter.toml", ".env")
DEEPEST = 100  # folders in folders: whoever goes through them holds each one open
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
            message = f"the backup has the form {fields['format']}, this version reads {FORMAT}"
            raise CorruptInputError(f"{message}: use the version that wrote it")
        members = tuple(Member(**member) for member in fields.pop("members"))
        return Manifest(members=members, **fields)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptInputError(f"the backup's manifest cannot be read: {error}") from error


def is_ours(name: str) -> bool:
    """Whether a member may have this name: below one of our folders, and never out of it."""
    if name in (*FILES, DATABASE, MANIFEST):
        return True
    is_plain = posixpath.normpath(name) == name and not name.startswith("/") and "\0" not in name
    return is_plain and any(name == tree or name.startswith(f"{tree}/") for tree in TREES)


def stays_inside(name: str, target: str) -> bool:
    """Whether a link leads to something in the same folder of a group, or of a session."""
    if not target or target.startswith("/"):
        return False
    led = PurePosixPath(posixpath.normpath(posixpath.join(posixpath.dirname(name), target)))
    tree = next((tree for tree in TREES if name.startswith(f"{tree}/")), None)
    if tree is None:
        return False
    folder = PurePosixPath(*PurePosixPath(name).parts[: len(PurePosixPath(tree).parts) + 1])
    return led.is_relative_to(folder)
