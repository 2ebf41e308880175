"""From the sources to the settings: the strongest value of each key, and all that is wrong."""

from __future__ import annotations

import pathlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hallporter.domain.errors import InvalidSettingsError
from hallporter.settings import file
from hallporter.settings.agreed import (
    HostSettings,
    Loaded,
    LogSettings,
    RetentionSettings,
    Settings,
    StoreSettings,
)
from hallporter.settings.keys import CHANNELS, GROUP, GROUPS, HOST, TABLES, dotted, key_at
from hallporter.settings.kinds import NotAllowedError, is_zone
from hallporter.settings.origin import Origin, Source
from hallporter.settings.reading import Found, shown, told, wrong
from hallporter.settings.variables import read_dotenv, read_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hallporter.settings.keys import Path


_ETC = pathlib.Path("/etc")


def load(home: pathlib.Path, environment: Mapping[str, str], *, etc: pathlib.Path = _ETC) -> Loaded:
    """The settings of a home. An empty variable counts as not set; `etc` knows the machine's zone.

    Raises `InvalidSettingsError` with everything that is wrong, one problem a line.
    """
    dotenv, dotenv_itself = read_dotenv(home / ".env")
    from_dotenv = {name: value for name, value in dotenv.items() if value}
    from_environment = {name: value for name, value in environment.items() if value}
    readings = (  # the weakest first
        dotenv_itself,
        file.read_file(home / file.NAME, {**from_dotenv, **from_environment}),
        read_variables(from_dotenv, Source.DOTENV),
        read_variables(from_environment, Source.ENVIRONMENT),
    )
    found = {path: one for reading in readings for path, one in reading.found.items()}
    values, wrong_values = _judge(found)
    problems = [problem for reading in readings for problem in reading.problems] + wrong_values
    if problems:
        raise InvalidSettingsError("\n".join(problems), problems=tuple(problems))
    origins = {
        (table, name): Origin(source=Source.DEFAULT) for table in TABLES for name in TABLES[table]
    } | {path: one.origin for path, one in found.items()}
    return Loaded(
        settings=_agree(home, values, etc),
        origins=MappingProxyType({dotted(path): origin for path, origin in origins.items()}),
        written=MappingProxyType({dotted(path): one.written for path, one in found.items()}),
        warnings=(
            *(warning for reading in readings for warning in reading.warnings),
            *_moot(found),
        ),
    )


def _moot(found: Mapping[Path, Found]) -> Iterator[str]:
    for path, one in found.items():
        key = key_at(path)
        if key is not None and key.moot:
            yield f"{dotted(path)} from {one.origin} has no effect: {key.moot}"


def _judge(found: Mapping[Path, Found]) -> tuple[dict[Path, object], list[str]]:
    values: dict[Path, object] = {}
    problems: list[str] = []
    for path, one in found.items():
        if one.kind is None:
            values[path] = one.value
            continue
        try:
            values[path] = one.kind.read(one.value)
        except NotAllowedError as error:
            what = told(path, shown(path, one.written), one.origin)
            problems.append(wrong(what, one.kind.allowed, error))
    return values, problems


def _agree(home: pathlib.Path, values: Mapping[Path, object], etc: pathlib.Path) -> Settings:
    given = _nested(values)
    defaults = {
        table: {name: key.default for name, key in TABLES[table].items()} for table in TABLES
    }
    defaults["host"]["timezone"] = _system_zone(etc)
    agreed = {table: {**defaults[table], **given.get(table, {})} for table in TABLES}
    url = agreed["store"]["url"]
    return Settings(
        host=HostSettings(**agreed["host"]),
        store=StoreSettings(url=url, path=_database(home, url)),
        logs=LogSettings(**agreed["logs"]),
        retention=RetentionSettings(**agreed["retention"]),
        agent=MappingProxyType(agreed["agent"]),
        groups=MappingProxyType(
            {folder: own.get("agent", {}) for folder, own in given.get(GROUPS, {}).items()}
        ),
        senders=MappingProxyType(
            {
                folder: {key: own[key] for key in GROUP if key in own}
                for folder, own in given.get(GROUPS, {}).items()
            }
        ),
        channels=MappingProxyType(given.get(CHANNELS, {})),
    )


def _nested(values: Mapping[Path, object]) -> dict[str, Any]:
    """Tables within tables; what comes later replaces what stands in its way."""
    root: dict[str, Any] = {}
    for path, value in values.items():
        here = root
        for name in path[:-1]:
            if not isinstance(here.get(name), dict):
                here[name] = {}
            here = here[name]
        if value != {}:
            here[path[-1]] = value
        else:
            here.setdefault(path[-1], {})
    return root


def _database(home: pathlib.Path, url: str) -> pathlib.Path:
    # Joined to the home, an absolute path stays what it is.
    return home / url.removeprefix("sqlite:///")


def _system_zone(etc: pathlib.Path) -> str:
    """What the machine's owner has set, as a name; UTC when there is none."""
    link, note = etc / "localtime", etc / "timezone"
    names = [str(link.readlink()).rpartition("zoneinfo/")[2]] if link.is_symlink() else []
    if note.is_file():
        names.append(note.read_text(encoding="utf-8", errors="replace").strip())
    return next((name for name in names if is_zone(name)), str(HOST["timezone"].default))
