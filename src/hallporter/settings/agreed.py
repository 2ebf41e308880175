"""The settings as the house uses them: every value judged, every source weighed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallporter.domain.brief import AgentSettings
from hallporter.domain.errors import AgentRefusedError, InvalidRequestError
from hallporter.domain.group import Everyone, Others, SenderChange, SenderRule
from hallporter.settings.keys import AGENT, GROUPS
from hallporter.settings.kinds import NotAllowedError
from hallporter.settings.origin import Origin, Source
from hallporter.settings.reading import hint, shown, wrong

# Of `groups set`.
_OPTIONS = {
    "kind": "--agent KIND",
    "command": "--command '…'",
    "sandbox": "--sandbox NAME",
    "mounts": "--mount '…'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    assistant_name: str
    has_own_number: bool
    max_concurrent_containers: int
    max_remote: int  # turns at a time with each remote endpoint
    timezone: str
    log_level: str
    max_output_size: int  # bytes
    address: str
    port: int
    min_free_disk: int | None  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    url: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    max_size: int  # bytes of a file before it is put aside
    keep: int  # files put aside


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long things are kept, 0 for ever; `hour` is when the nightly sweep runs."""

    messages_days: int
    media_days: int
    logs_days: int
    hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`groups` holds what the agent of a folder, in small letters, has of its own, `senders` who
    may talk to it; `channels` are judged by the channels."""

    host: HostSettings
    store: StoreSettings
    logs: LogSettings
    retention: RetentionSettings
    agent: Mapping[str, Any]
    groups: Mapping[str, Mapping[str, Any]]
    senders: Mapping[str, Mapping[str, Any]]
    channels: Mapping[str, Mapping[str, object]]

    def kind_for(self, folder: str, stored: Mapping[str, object]) -> str:
        """The kind alone: also of an agent that could not be started as it is set."""
        own = self.groups.get(folder.casefold(), {})
        return str({**self.agent, **stored, **own}["kind"])

    def senders_for(self, folder: str, stored: SenderRule | None) -> SenderRule | None:
        """Whose words count in a group: its own file's values, then those `stored` with it."""
        own = self.senders.get(folder.casefold(), {})
        allow = own.get("senders", stored and stored.allow)
        if allow is None:
            return None
        others = own.get("senders_others", stored.others if stored else Others.IGNORE)
        return SenderRule(allow=allow, others=Others(others))

    def agent_for(self, folder: str, stored: Mapping[str, object]) -> AgentSettings:
        """Who answers a group: its own file's values, then those `stored` with it, then `[agent]`.

        Raises `AgentRefusedError` when they make no agent.
        """
        own = self.groups.get(folder.casefold(), {})
        values = {**self.agent, **_read_stored(folder, stored), **own}
        if values["kind"] == "command" and not values["command"]:
            raise AgentRefusedError(
                f"The agent of '{folder}' is of kind 'command' and has no command: set"
                f' command = ["PROGRAM", "ARGUMENT"] in [agent] or [groups.{folder}.agent]'
                f" of hallporter.toml, or `hallporter groups set {folder} --command …`.",
                folder=folder,
                setting="command",
            )
        return AgentSettings(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings, where each value came from and how it was written there (by dotted key), and
    what to mind."""

    settings: Settings
    origins: Mapping[str, Origin]
    written: Mapping[str, object]
    warnings: tuple[str, ...]

    def fixed_by(self, folder: str, key: str) -> Origin | None:
        """What is stronger than the database for this key of a group's agent, if anything is."""
        return self.origins.get(f"groups.{folder.casefold()}.agent.{key}")

    def refuse_fixed_senders(self, folder: str, change: SenderChange | Everyone) -> None:
        """Raises `InvalidRequestError` for what the database could not change, naming by what."""
        is_list = isinstance(change, Everyone) or change.allow is not None
        is_others = isinstance(change, SenderChange) and change.others is not None
        for key, is_asked in (("senders", is_list), ("senders_others", is_others)):
            origin = self.origins.get(f"groups.{folder.casefold()}.{key}")
            if is_asked and origin is not None:
                message = f"{key} of the group '{folder}' is fixed by {origin}: change it there"
                raise InvalidRequestError(message, field="senders")

    def where_to_change(self, folder: str, key: str, stored: Mapping[str, object]) -> str:
        """The source that decides this key of a group's agent; completes "change it …"."""
        if (origin := self.fixed_by(folder, key)) is not None:
            return _in_source(origin, f"groups.{folder}.agent", key)
        house = self.origins[f"agent.{key}"]
        if key not in stored and house.source is not Source.DEFAULT:
            return _in_source(house, "agent", key)
        if key in _OPTIONS:
            return f"with `hallporter groups set {folder} {_OPTIONS[key]}`"
        return f"with PATCH /api/groups/{folder}"

    def named_folders(self) -> Mapping[str, str]:
        """The folders that have settings of their own, and where the first of these stands."""
        found: dict[str, str] = {}
        for dotted_key, origin in self.origins.items():
            table, _, rest = dotted_key.partition(".")
            if table == GROUPS:
                found.setdefault(rest.partition(".")[0], str(origin))
        return found

    def refuse_fixed(self, folder: str, values: Mapping[str, object]) -> None:
        """Raises `InvalidRequestError` for what the database could not change, naming by what."""
        for key, value in values.items():
            if (origin := self.fixed_by(folder, key)) is not None:
                message = f"{key} of the agent of '{folder}' is fixed by {origin}: change it there"
                raise InvalidRequestError(message, field=key, value=value)


def _in_source(origin: Origin, table: str, key: str) -> str:
    where = f"{key} in [{table}] of {origin}" if origin.source is Source.FILE else str(origin)
    return f"there: {where}; it acts at the next start"


def check_agent(values: Mapping[str, object]) -> Mapping[str, object]:
    """Some agent settings from outside, as they may be stored with a group.

    Raises `InvalidRequestError` at the first that cannot be.
    """
    for name, value in values.items():
        if name not in AGENT:
            message = f"there is no agent setting '{name}': {hint(name, AGENT)}"
            raise InvalidRequestError(message, field=name, value=value)
        try:
            AGENT[name].kind.read(value)
        except NotAllowedError as error:
            what = f"{name}: {shown((name,), value)}"
            message = wrong(what, AGENT[name].kind.allowed, error)
            raise InvalidRequestError(message, field=name, value=value) from error
    return dict(values)


def _read_stored(folder: str, stored: Mapping[str, object]) -> Mapping[str, object]:
    try:
        checked = check_agent(stored)
    except InvalidRequestError as error:
        message = f"The agent settings stored with '{folder}' do not fit: {error.message}."
        setting = error.facts["field"]
        raise AgentRefusedError(message, folder=folder, setting=setting) from error
    return {name: AGENT[name].kind.read(value) for name, value in checked.items()}
