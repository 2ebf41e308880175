"""The settings as a list: what each is, where it came from, and which have changed since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hallporter.domain.finding import Setting
from hallporter.settings.keys import ALIASES, CHANNELS, GROUPS, TABLES, dotted, key_at
from hallporter.settings.kinds import plain
from hallporter.settings.origin import Source

if TYPE_CHECKING:
    from hallporter.settings.agreed import Loaded, Settings
    from hallporter.settings.keys import Path

AT_THE_NEXT_START = "at the next start"
FROM_THE_NEXT_TURN = "from the group's next turn"


def listed(
    loaded: Loaded, stored: Mapping[str, Mapping[str, object]] | None = None
) -> tuple[Setting, ...]:
    """Every key of ours, what channels were told, and what is `stored` with groups, by folder."""
    return (*_loaded(loaded), *_stored(stored or {}))


def _loaded(loaded: Loaded) -> tuple[Setting, ...]:
    values = _values(loaded.settings)
    return tuple(
        Setting(
            key=key,
            value=_words(loaded, path, values[path]) if path in values else "set",
            origin=str(origin),
            acts=AT_THE_NEXT_START,
            is_default=origin.source is Source.DEFAULT,
        )
        for key, origin in loaded.origins.items()
        for path in [tuple(key.split("."))]
    )


def _stored(stored: Mapping[str, Mapping[str, object]]) -> tuple[Setting, ...]:
    values = {
        (GROUPS, folder, "agent", name): value
        for folder, own in stored.items()
        for name, value in own.items()
    }
    return tuple(
        Setting(
            key=dotted(path),
            value="none" if value is None else plain(value),
            origin="the database",
            acts=FROM_THE_NEXT_TURN,
            is_default=False,
        )
        for path, value in values.items()
    )


def changes(then: Loaded, now: Loaded) -> tuple[str, ...]:
    """The keys that a start now would find different; a channel is named as a whole."""
    before, after = _values(then.settings), _values(now.settings)
    keys = [dotted(path) for path in {**before, **after} if before.get(path) != after.get(path)]
    names = {**then.settings.channels, **now.settings.channels}
    channels = [
        f"{CHANNELS}.{name}"
        for name in names
        if then.settings.channels.get(name) != now.settings.channels.get(name)
    ]
    return (*sorted(keys), *sorted(channels))


def _values(settings: Settings) -> dict[Path, object]:
    values: dict[Path, object] = {}
    for table, keys in TABLES.items():
        held = getattr(settings, table)
        for name in keys:
            values[table, name] = held[name] if isinstance(held, Mapping) else getattr(held, name)
    for folder, own in settings.groups.items():
        for name, value in own.items():
            values[GROUPS, folder, "agent", name] = value
    for folder, rule in settings.senders.items():
        for name, value in rule.items():
            values[GROUPS, folder, name] = value
    return values


def _words(loaded: Loaded, path: Path, value: object) -> str:
    """As the operator wrote it; a default, and what an older name says in units of its own, as
    they would."""
    key, known = dotted(path), key_at(path)
    origin = loaded.origins[key]
    if known is not None and (origin.source is Source.DEFAULT or origin.name in ALIASES):
        return known.kind.spell(value)
    return plain(loaded.written[key])
