"""Settings in variables: the environment, and `.env` in the home."""

from __future__ import annotations

import os
from io import StringIO
from typing import TYPE_CHECKING

from dotenv.parser import parse_stream

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.folder import parse_folder
from hallporter.settings.keys import AGENT, ALIASES, CHANNELS, GROUP, GROUPS, TABLES, dotted, key_at
from hallporter.settings.origin import Origin, Source
from hallporter.settings.reading import Found, Reading, hint

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Mapping

    from hallporter.settings.keys import Path

_PREFIX = "HALLPORTER_"
# Read by the command line and the vault; no settings of the file.
_ELSEWHERE = frozenset(
    {"HALLPORTER_HOME", "HALLPORTER_TOKEN", "HALLPORTER_URL", "HALLPORTER_VAULT_KEY"}
)


def environment() -> Mapping[str, str]:
    """The process's variables; everything else takes them as an argument."""
    return dict(os.environ)


def read_dotenv(path: pathlib.Path) -> tuple[Mapping[str, str], Reading]:
    """The variables of a `.env` file, if there is one; the process's own stay as they are."""
    variables: dict[str, str] = {}
    reading = Reading()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return variables, reading
    except UnicodeDecodeError:
        reading.problems.append(f"{path} is not UTF-8 text: save it as UTF-8")
        return variables, reading
    except OSError as error:
        reading.problems.append(f"{path} cannot be read: {error.strerror}")
        return variables, reading
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            # Not the line itself: it may hold a secret.
            where = f"line {binding.original.line} of .env"
            reading.warnings.append(f"{where} was left out: write it as NAME=value")
        elif binding.key is not None and binding.value is not None:
            variables[binding.key] = binding.value
    return variables, reading


def read_variables(variables: Mapping[str, str], source: Source) -> Reading:
    """The settings among the variables: the documents' names, and ours, which are stronger."""
    reading = Reading()
    for name, alias in ALIASES.items():
        if name in variables:
            reading.found[alias.path] = Found(
                value=variables[name],
                written=variables[name],
                origin=Origin(source=source, name=name),
                kind=alias.kind,
            )
    for name in sorted(variables):
        if name.startswith(_PREFIX) and name not in _ELSEWHERE:
            _read_ours(name, variables[name], source, reading)
    return reading


def _read_ours(name: str, value: str, source: Source, reading: Reading) -> None:
    path = _path_of(name)
    key = key_at(path)
    is_channel = len(path) > 2 and path[0] == CHANNELS and all(path)  # noqa: PLR2004 - name, key
    if key is None and not is_channel:
        where = "the environment" if source is Source.ENVIRONMENT else source.value
        near = hint(name, _known_names(path))
        reading.warnings.append(f"unknown variable '{name}' in {where}: {near}")
        return
    origin = Origin(source=source, name=name)
    if path[0] == GROUPS:
        try:
            parse_folder(path[1])
        except InvalidRequestError as error:
            reading.problems.append(f"{dotted(path)} from {origin}: {error.message}")
            return
    reading.found[path] = Found(
        value=value,
        written=value,
        origin=origin,
        kind=None if key is None else key.kind,
    )


def _path_of(name: str) -> Path:
    """Names of variables have one letter case only; so do paths, folders included."""
    rest = name.removeprefix(_PREFIX).lower()
    groups = f"{GROUPS}__"
    if rest.startswith(groups):
        # A folder's name may itself hold two underscores: the end is what is sure.
        rest = rest.removeprefix(groups)
        folder, _, key = rest.rpartition("__")
        if key in GROUP:
            return (GROUPS, folder, key)
        folder, _, key = rest.rpartition("__agent__")
        return (GROUPS, folder, "agent", key)
    return tuple(rest.split("__"))


def _known_names(path: Path) -> list[str]:
    tables: dict[Path, Mapping[str, object]] = {(table,): keys for table, keys in TABLES.items()}
    if path[0] == GROUPS:
        folder = path[1] or "folder"
        tables = {(GROUPS, folder, "agent"): AGENT, (GROUPS, folder): GROUP}
    return [
        _PREFIX + "__".join((*table, key)).upper() for table, keys in tables.items() for key in keys
    ]
