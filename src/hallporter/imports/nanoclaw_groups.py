"""A registered group of NanoClaw's, with what lies elsewhere for it: list, session, settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.folder import check_shape
from hallporter.domain.foreign import ForeignGroup, Unread
from hallporter.imports.allow_lists import read_mount
from hallporter.imports.nanoclaw_rows import channel_of
from hallporter.imports.values import flag, moment, span, text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

    from hallporter.domain.extra_mount import ExtraMount
    from hallporter.imports.allow_lists import Senders

_MAIN = "main"
_LONGEST_SESSION = 200  # characters of its id


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReader:
    """`sessions` are ids by folder; `has_memory` tells whether what an agent remembers is there."""

    senders: Senders
    sessions: Mapping[str, str]
    has_memory: Callable[[str], bool]
    may_mount: bool

    def read(self, row: sqlite3.Row | Unread) -> ForeignGroup | Unread:
        if isinstance(row, Unread):
            return row
        chat, folder = text(row["jid"]), text(row["folder"])
        if not chat or not folder:
            return Unread(name=chat or folder or "a group", why="it has no chat or no folder")
        try:
            check_shape(folder)  # from here on it is a step of paths
        except InvalidRequestError as error:
            return Unread(name=chat, why=error.message)
        remarks: list[str] = []
        config = _config(row["container_config"], remarks)
        rule = self.senders.rule_for(chat)
        if rule is not None:
            remarks.append(
                "only those on its list are heard; what came from the linked number itself passed"
                " NanoClaw's list always, and here its id has to be on it"
            )
        return ForeignGroup(
            chat=chat,
            name=text(row["name"]) or "",
            folder=folder,
            trigger=text(row["trigger_pattern"]),
            requires_trigger=flag(row["requires_trigger"], otherwise=True),
            is_main=flag(row["is_main"], otherwise=folder == _MAIN),
            added_at=moment(row["added_at"]),
            channel=channel_of(chat),
            mounts=self._mounts(config.get("additionalMounts"), remarks),
            timeout=span(config.get("timeout")),
            senders=rule,
            session_id=self._session(folder, remarks),
            remarks=tuple(remarks),
        )

    def _mounts(self, asked: object, remarks: list[str]) -> tuple[ExtraMount, ...]:
        """Those that could be shown: an agent here does not start without what it is promised."""
        mounts: dict[str, ExtraMount] = {}
        for one in asked if isinstance(asked, list) else ():
            try:
                mount = read_mount(one)
                problem = self._problem(mount, mounts)
            except InvalidRequestError as error:
                remarks.append(f"a folder from elsewhere is left out: {error.message}")
                continue
            if problem:
                remarks.append(f"the folder {mount.path} is left out: {problem}")
            else:
                mounts[mount.name] = mount
        return tuple(mounts.values())

    def _problem(self, mount: ExtraMount, known: Mapping[str, ExtraMount]) -> str:
        if mount.name in known:
            return f"another one is called {mount.name}"
        if not self.may_mount:
            return "there is no allow-list of folders, so NanoClaw did not show it either"
        try:
            is_there = Path(mount.path).expanduser().exists()
        except (OSError, RuntimeError):
            is_there = False
        return "" if is_there else "it is not on this machine"

    def _session(self, folder: str, remarks: list[str]) -> str | None:
        session = self.sessions.get(folder)
        if session is None:
            return None
        if len(session) > _LONGEST_SESSION or not session.isprintable():
            remarks.append("its session is left out: the id is none")
            return None
        if not self.has_memory(folder):
            remarks.append("its session is left out: what the agent remembered is not there")
            return None
        return session


def _config(value: object, remarks: list[str]) -> Mapping[str, Any]:
    if value is None or value == "":
        return {}
    try:
        config = json.loads(text(value) or "")
    except (ValueError, RecursionError):
        config = None
    if isinstance(config, dict):
        return config
    remarks.append("its settings (container_config) cannot be read: it has the house's own")
    return {}
