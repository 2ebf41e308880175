"""The operator's allow-list of folders from elsewhere, read afresh at each start of an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallporter.domain.errors import AgentRefusedError
from hallporter.domain.extra_mount import Allowance, Denied, ExtraMount, Granted, Root, decide

if TYPE_CHECKING:
    from collections.abc import Sequence

_SETTING = "mounts"  # what a refusal is about
_ROOT_KEYS = frozenset({"path", "allowReadWrite", "description"})
_KEYS = frozenset({"allowedRoots", "blockedPatterns", "nonMainReadOnly"})


class _UnfitError(Exception):
    """The file is not an allow-list; the message completes "… is not an allow-list: "."""


def granted(
    asked: Sequence[ExtraMount], *, policy: Path, protected: Sequence[Path], is_main: bool
) -> tuple[Granted, ...]:
    """What may be shown of what is asked for; `policy` is the file of the allow-list.

    Raises `AgentRefusedError` for the first that may not, and for all without a file.
    """
    if not asked:
        return ()
    allowance = _read(policy, asked[0])
    own = [path.resolve() for path in protected]
    return tuple(_judge(ask, allowance, policy, own, is_main=is_main) for ask in asked)


def _judge(
    ask: ExtraMount, allowance: Allowance, policy: Path, protected: Sequence[Path], *, is_main: bool
) -> Granted:
    try:
        source = Path(ask.path).expanduser().resolve(strict=True)
        is_shown = source.is_dir() or source.is_file()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        message = f"{ask.path}, to be mounted as {ask.name}, cannot be used: {why}"
        message += "; make it, or take it out of the mounts"
        raise AgentRefusedError(message, setting=_SETTING) from error
    decision = decide(ask, source, allowance, protected=protected, is_main=is_main)
    if not is_shown:
        decision = Denied("it is neither a folder nor a file")
    if isinstance(decision, Denied):
        led = "" if str(source) == ask.path else f" (which is {source})"
        message = (
            f"{ask.path}{led} may not be mounted as {ask.name}: {decision.why};"
            f" take it out of the mounts, or see to {policy}"
        )
        raise AgentRefusedError(message, path=ask.path, setting=_SETTING)
    return decision


def _read(policy: Path, ask: ExtraMount) -> Allowance:
    try:
        return _allowance(json.loads(policy.read_bytes()))
    except FileNotFoundError:
        problem = f"{policy}, the allow-list of extra mounts, is missing"
    except OSError as error:
        problem = f"{policy}, the allow-list of extra mounts, cannot be read: {error.strerror}"
    except (ValueError, RecursionError):
        problem = f"{policy} is not valid JSON"
    except _UnfitError as error:
        problem = f"{policy} is not an allow-list: {error}"
    example = {
        "allowedRoots": [{"path": ask.path, "allowReadWrite": ask.writable}],
        "blockedPatterns": [],
        "nonMainReadOnly": True,
    }
    shown = json.dumps(example, ensure_ascii=False)
    raise AgentRefusedError(
        f"{problem}, so nothing is mounted; write into it, for example: {shown}",
        setting=_SETTING,
    )


def _allowance(document: Any) -> Allowance:  # noqa: ANN401  JSON
    """An unknown key is refused as well: a misspelt block would block nothing."""
    _require_keys(document, _KEYS, "the whole")
    roots, blocked = document.get("allowedRoots"), document.get("blockedPatterns", [])
    if not isinstance(roots, list):
        raise _UnfitError("allowedRoots must be a list")
    if not isinstance(blocked, list) or not all(isinstance(one, str) and one for one in blocked):
        raise _UnfitError("blockedPatterns must be a list of texts that are not empty")
    return Allowance(
        roots=tuple(_root(root) for root in roots),
        blocked=tuple(blocked),
        non_main_read_only=_claim(document, "nonMainReadOnly", otherwise=True),
    )


def _root(root: Any) -> Root:  # noqa: ANN401  JSON
    _require_keys(root, _ROOT_KEYS, "an allowed root")
    path = root.get("path")
    if not isinstance(path, str) or not path.startswith(("/", "~/")) or "\0" in path:
        raise _UnfitError("an allowed root has a path that begins with '/' or '~/'")
    try:
        resolved = Path(path).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise _UnfitError(f"the allowed root {path} leads nowhere: {error}") from error
    return Root(path=resolved, writable=_claim(root, "allowReadWrite", otherwise=False))


def _require_keys(value: object, known: frozenset[str], what: str) -> None:
    if not isinstance(value, dict):
        raise _UnfitError(f"{what} must be an object")
    for key in value:
        if key not in known:
            raise _UnfitError(f"{what} has an unknown key '{key}', known are {sorted(known)}")


def _claim(fields: dict[str, Any], key: str, *, otherwise: bool) -> bool:
    value = fields.get(key, otherwise)
    if not isinstance(value, bool):
        raise _UnfitError(f"{key} must be true or false")
    return value
