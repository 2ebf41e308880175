"""NanoClaw's allow-lists: whose words count in a chat, and which folders agents may be shown."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.extra_mount import ExtraMount, parse_mount
from hallporter.domain.group import Others, SenderRule, check_senders
from hallporter.domain.import_report import Noun, Outcome, Piece
from hallporter.imports.place import read_file
from hallporter.removal import opened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MOUNTS = "mount-allowlist.json"
_SENDERS = "sender-allowlist.json"
_OTHERS = {"trigger": Others.STORE, "drop": Others.IGNORE}


class _UnfitError(Exception):
    """The file is not what it should be; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Senders:
    """`broken` tells of a file that counts for nothing; it let everyone talk there, too."""

    otherwise: SenderRule | None = None
    by_chat: Mapping[str, SenderRule | None] | None = None
    broken: Piece | None = None

    def rule_for(self, chat: str) -> SenderRule | None:
        own = self.by_chat or {}
        return own.get(chat, self.otherwise)


def read_senders(config: Path) -> Senders:
    """The list of 1.2.3 and later."""
    try:
        document = _read(config / _SENDERS)
        if document is None:
            return Senders()
        chats = document.get("chats", {})
        if not isinstance(chats, dict):
            raise _UnfitError("'chats' is no object")
        by_chat = {str(chat): _rule(entry) for chat, entry in chats.items()}
        otherwise = _rule(document.get("default", {"allow": "*"}))
    except _UnfitError as error:
        why = f"{error}; NanoClaw lets everyone talk then, and so do the groups here"
        return Senders(broken=_piece(_SENDERS, Outcome.SKIPPED, why))
    return Senders(otherwise=otherwise, by_chat=by_chat)


def carry_mounts(config: Path, policy: Path, *, is_dry_run: bool) -> Piece | None:
    """The allow-list of folders, unless there is one of ours; None when there is none there."""
    try:
        document = _read(config / _MOUNTS)
        if document is None:
            return None
        ours = _allowance(document)
    except _UnfitError as error:
        return _piece(_MOUNTS, Outcome.SKIPPED, str(error))
    text = f"{json.dumps(ours, indent=2, ensure_ascii=False)}\n"
    if policy.exists():
        is_same = policy.read_text(encoding="utf-8", errors="replace") == text
        why = "policy/mounts.json is there already, and stays: see what it lacks"
        return _piece(_MOUNTS, *((Outcome.THERE,) if is_same else (Outcome.SKIPPED, why)))
    if not is_dry_run:
        policy.parent.mkdir(mode=0o700, exist_ok=True)
        part = policy.with_name(f"{policy.name}.part")
        part.unlink(missing_ok=True)
        opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as writing:
            writing.write(text)
        part.replace(policy)
    return _piece(_MOUNTS, Outcome.CARRIED)


def has_mounts(config: Path, policy: Path) -> bool:
    """Whether any folder can be shown at all: without a list neither of us shows one."""
    return policy.exists() or (config / _MOUNTS).exists()


def read_mount(value: object) -> ExtraMount:
    """One of a group's `additionalMounts`. Raises `InvalidRequestError`."""
    if not isinstance(value, dict):
        raise InvalidRequestError("it is no object with a hostPath", field="mounts")
    path, name = value.get("hostPath"), value.get("containerPath")
    fields: dict[object, object] = {"path": path, "writable": value.get("readonly") is False}
    if isinstance(name, str) and name.strip("/"):
        fields["name"] = name.strip("/").replace("/", "-")
    return parse_mount(fields)


def _rule(entry: object) -> SenderRule | None:
    """None lets everyone talk."""
    if not isinstance(entry, dict):
        raise _UnfitError("an entry is no object")
    allow, mode = entry.get("allow", "*"), entry.get("mode", "trigger")
    if mode not in _OTHERS:
        raise _UnfitError("a mode is neither 'trigger' nor 'drop'")
    if allow == "*":
        return None
    if not isinstance(allow, list) or not all(isinstance(one, str) for one in allow):
        raise _UnfitError("'allow' is neither '*' nor a list of ids")
    try:
        return SenderRule(allow=check_senders(allow), others=_OTHERS[mode])
    except InvalidRequestError as error:
        raise _UnfitError(error.message) from error


def _allowance(document: Mapping[str, Any]) -> dict[str, object]:
    """The same words as ours; of what else may stand there, nothing counted."""
    roots, blocked = document.get("allowedRoots"), document.get("blockedPatterns", [])
    if not isinstance(roots, list) or not all(_is_root(root) for root in roots):
        raise _UnfitError("'allowedRoots' is no list of objects with a path")
    if not isinstance(blocked, list) or not all(isinstance(one, str) for one in blocked):
        raise _UnfitError("'blockedPatterns' is no list of texts")
    kept = ("path", "allowReadWrite", "description")
    return {
        "allowedRoots": [{key: root[key] for key in kept if key in root} for root in roots],
        "blockedPatterns": [one for one in blocked if one],
        "nonMainReadOnly": document.get("nonMainReadOnly") is not False,
    }


def _is_root(root: object) -> bool:
    if not isinstance(root, dict) or not isinstance(root.get("allowReadWrite", False), bool):
        return False
    path = root.get("path")
    return isinstance(path, str) and path.startswith(("/", "~/")) and "\0" not in path


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        # The folder is its owner's own, out of agents' reach: a link there is meant.
        real = file.resolve()
        with opened(real.parent) as folder:
            document = json.loads(read_file(real.name, folder))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _UnfitError(f"it cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _UnfitError("it is not valid JSON") from error
    if not isinstance(document, dict):
        raise _UnfitError("it is no JSON object")
    return document


def _piece(name: str, outcome: Outcome, why: str = "") -> Piece:
    return Piece(noun=Noun.ALLOW_LISTS, name=name, outcome=outcome, why=why)
