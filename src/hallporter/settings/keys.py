"""Every setting there is: its name, its kind and its default."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from hallporter.settings import kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.settings.kinds import Kind

Path = tuple[str, ...]  # host, port

_AT_ONCE = timedelta(0)
_SHORTEST_TURN = timedelta(seconds=1)
_SECRET_WORDS = ("token", "secret", "key", "password")


@dataclass(frozen=True, slots=True)
class Key:
    """`default` is in the form that `kind` reads values into; `moot` says why this version does
    nothing with it."""

    kind: Kind
    default: object
    moot: str = ""


HOST: Mapping[str, Key] = MappingProxyType(
    {
        "assistant_name": Key(kinds.one_line(64), "Andy"),
        "has_own_number": Key(
            kinds.yes_or_no(), False, moot="there is no channel with a number yet"
        ),
        "max_concurrent_containers": Key(kinds.whole(1, 10_000), 5),
        "max_remote": Key(kinds.whole(1, 10_000), 32, moot="there are no remote agents yet"),
        "timezone": Key(kinds.zone(), "UTC"),
        "log_level": Key(kinds.choice("debug", "info", "warning", "error", any_case=True), "info"),
        "max_output_size": Key(kinds.size(1), 10 << 20),
        "address": Key(kinds.address(), "127.0.0.1"),
        "port": Key(kinds.whole(0, 65535), 3100),
        "min_free_disk": Key(kinds.or_none(kinds.size(1)), 500 << 20),
    }
)

STORE: Mapping[str, Key] = MappingProxyType(
    {"url": Key(kinds.database(), "sqlite:///hallporter.db")}
)

LOGS: Mapping[str, Key] = MappingProxyType(
    {
        # Less would turn the file over every few lines.
        "max_size": Key(kinds.size(64 << 10), 10 << 20),
        "keep": Key(kinds.whole(1, 1000), 5),
    }
)

_DAYS = kinds.whole(0, 36_500)

RETENTION: Mapping[str, Key] = MappingProxyType(
    {
        "messages_days": Key(_DAYS, 0),
        "media_days": Key(_DAYS, 0),
        "logs_days": Key(_DAYS, 0),
        "hour": Key(kinds.whole(0, 23), 3),
    }
)

AGENT: Mapping[str, Key] = MappingProxyType(
    {
        "kind": Key(kinds.choice("claude", "demo", "command", "adk", "openai"), "demo"),
        "command": Key(kinds.argv(), ()),
        "image": Key(kinds.image(), "hallporter-agent:latest", moot="there are no containers yet"),
        "sandbox": Key(kinds.choice("auto", "docker", "podman", "bubblewrap", "process"), "auto"),
        "network": Key(kinds.choice("gate", "none", "open"), "gate"),
        "timeout": Key(kinds.duration(_SHORTEST_TURN), timedelta(minutes=30)),
        "idle_timeout": Key(kinds.duration(_AT_ONCE), timedelta(minutes=30)),
        # Docker takes no less than 6 MiB, and nothing useful starts in less.
        "memory": Key(kinds.or_none(kinds.size(6 << 20)), 2 << 30),
        "pids": Key(kinds.or_none(kinds.whole(1, 1 << 22)), 512),
        "cpus": Key(kinds.or_none(kinds.processors()), None),
        "mounts": Key(kinds.mounts(), ()),
    }
)

# Beside a group's agent.
GROUP: Mapping[str, Key] = MappingProxyType(
    {
        "senders": Key(kinds.senders(), None),
        "senders_others": Key(kinds.choice("ignore", "store"), "ignore"),
    }
)

TABLES: Mapping[str, Mapping[str, Key]] = MappingProxyType(
    {"host": HOST, "store": STORE, "logs": LOGS, "retention": RETENTION, "agent": AGENT}
)
GROUPS = "groups"
CHANNELS = "channels"
TOP_LEVEL = (*TABLES, GROUPS, CHANNELS)


@dataclass(frozen=True, slots=True)
class Alias:
    """One of the documents' variables: which setting it is, and how it is written there."""

    path: Path
    kind: Kind


ALIASES: Mapping[str, Alias] = MappingProxyType(
    {
        "ASSISTANT_NAME": Alias(("host", "assistant_name"), HOST["assistant_name"].kind),
        "ASSISTANT_HAS_OWN_NUMBER": Alias(("host", "has_own_number"), kinds.only_true()),
        "CONTAINER_IMAGE": Alias(("agent", "image"), AGENT["image"].kind),
        "CONTAINER_RUNTIME": Alias(("agent", "sandbox"), AGENT["sandbox"].kind),
        "CONTAINER_TIMEOUT": Alias(("agent", "timeout"), kinds.milliseconds(_SHORTEST_TURN)),
        "IDLE_TIMEOUT": Alias(("agent", "idle_timeout"), kinds.milliseconds(_AT_ONCE)),
        "CONTAINER_MAX_OUTPUT_SIZE": Alias(
            ("host", "max_output_size"), HOST["max_output_size"].kind
        ),
        "MAX_CONCURRENT_CONTAINERS": Alias(
            ("host", "max_concurrent_containers"), HOST["max_concurrent_containers"].kind
        ),
        "TZ": Alias(("host", "timezone"), HOST["timezone"].kind),
        "LOG_LEVEL": Alias(("host", "log_level"), HOST["log_level"].kind),
    }
)


def key_at(path: Path) -> Key | None:
    """The key that a path names, in a table of ours or in a group's."""
    match path:
        case (table, name) if table in TABLES:
            return TABLES[table].get(name)
        case ("groups", _, "agent", name):
            return AGENT.get(name)
        case ("groups", _, name):
            return GROUP.get(name)
        case _:
            return None


def dotted(path: Path) -> str:
    """As people write it."""
    return ".".join(path)


def holds_secret(path: Path) -> bool:
    """Whether the value must not be shown; a database's address may carry a password."""
    return path == ("store", "url") or any(word in path[-1].lower() for word in _SECRET_WORDS)
