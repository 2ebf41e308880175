"""Settings in `hallporter.toml`."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.folder import parse_folder
from hallporter.settings.keys import AGENT, CHANNELS, GROUP, GROUPS, TABLES, TOP_LEVEL, dotted
from hallporter.settings.origin import Origin, Source
from hallporter.settings.reading import Found, Reading, hint, shown, told, wrong

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterable, Iterator, Mapping

    from hallporter.settings.keys import Key, Path
    from hallporter.settings.kinds import Kind

NAME = "hallporter.toml"
_ORIGIN = Origin(source=Source.FILE)
# As elsewhere, a second dollar keeps the text as it is: $${NAME}.
_REFERENCE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACE = re.compile(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)$")


def read_file(path: pathlib.Path, variables: Mapping[str, str]) -> Reading:
    """The settings of the file, if there is one, with every `${NAME}` filled in."""
    reader = _Reader(variables)
    document = _document(path, reader.reading)
    for table, content in reader.tables((), document, TOP_LEVEL):
        if table == GROUPS:
            reader.take_groups(content)
        elif table == CHANNELS:
            for name in content:
                reader.take_channel((CHANNELS, name), content[name])
        else:
            reader.take_keys((table,), content, TABLES[table])
    return reader.reading


class _Reader:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self.reading = Reading()
        self._variables = variables

    def tables(
        self, path: Path, content: Mapping[str, Any], known: Iterable[str]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The known tables in `content`; anything else is said."""
        for name, inside in content.items():
            if name not in known:
                self._unknown((*path, name), known)
            elif self._is_table((*path, name), inside):
                yield name, inside

    def take_keys(self, path: Path, content: Mapping[str, Any], known: Mapping[str, Key]) -> None:
        for name, value in content.items():
            if name in known:
                self._take((*path, name), value, known[name].kind)
            else:
                self._unknown((*path, name), known)

    def take_groups(self, groups: Mapping[str, Any]) -> None:
        folders: dict[str, str] = {}
        for name, group in groups.items():
            folder = name.casefold()
            try:
                parse_folder(name)
            except InvalidRequestError as error:
                self.reading.problems.append(f"{GROUPS}.{name} from {_ORIGIN}: {error.message}")
                continue
            if folder in folders:
                # Folders are unique ignoring case, so both mean the same group.
                other = f"{GROUPS}.{folders[folder]}"
                what = f"{GROUPS}.{name} from {_ORIGIN} is the same folder as {other}"
                self.reading.problems.append(f"{what}: put them into one table")
                continue
            folders[folder] = name
            if self._is_table((GROUPS, name), group):
                self._take_group(name, folder, group)

    def _take_group(self, name: str, folder: str, group: Mapping[str, Any]) -> None:
        for key, value in group.items():
            if key in GROUP:
                self._take((GROUPS, folder, key), value, GROUP[key].kind)
            elif key != "agent":
                self._unknown((GROUPS, name, key), ("agent", *GROUP))
            elif self._is_table((GROUPS, name, key), value):
                self.take_keys((GROUPS, folder, key), value, AGENT)

    def take_channel(self, path: Path, channel: object) -> None:
        if self._is_table(path, channel):
            for leaf, value in _leaves(path, channel):
                self._take(leaf, value, None)

    def _take(self, path: Path, value: object, kind: Kind | None) -> None:
        missing: list[str] = []
        filled = self._filled(value, missing)
        self.reading.problems.extend(
            f"{dotted(path)} from {_ORIGIN} needs the variable {name}, which is not set:"
            f" put {name}=… into .env or the environment"
            for name in missing
        )
        if not missing:
            self.reading.found[path] = Found(value=filled, written=value, origin=_ORIGIN, kind=kind)

    def _filled(self, value: object, missing: list[str]) -> object:
        def fill(match: re.Match[str]) -> str:
            if match[1]:
                return match[0][1:]
            if match[2] not in self._variables and match[2] not in missing:
                missing.append(match[2])
            return self._variables.get(match[2], "")

        match value:
            case str():
                return _REFERENCE.sub(fill, value)
            case list():
                return [self._filled(item, missing) for item in value]
            case dict():
                return {name: self._filled(item, missing) for name, item in value.items()}
            case _:
                return value

    def _unknown(self, path: Path, known: Iterable[str]) -> None:
        near = hint(path[-1], known)
        self.reading.warnings.append(f"unknown key '{dotted(path)}' in {NAME}: {near}")

    def _is_table(self, path: Path, value: object) -> bool:
        if isinstance(value, dict):
            return True
        what = told(path, shown(path, value), _ORIGIN)
        self.reading.problems.append(wrong(what, f"a table, [{dotted(path)}]"))
        return False


def _leaves(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    """An empty table counts: a channel's table switches it on."""
    if not isinstance(value, dict) or not value:
        yield path, value
        return
    for name, inside in value.items():
        yield from _leaves((*path, name), inside)


def _document(path: pathlib.Path, reading: Reading) -> Mapping[str, Any]:
    try:
        # Some editors put a mark before the first letter, which TOML does not know.
        raw = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        return {}
    except OSError as error:
        reading.problems.append(f"{path} cannot be read: {error.strerror}")
        return {}
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        place = _end(raw[: error.start].decode())
        reading.problems.append(f"{path}, {place}: not UTF-8 text, save it as UTF-8")
        return {}
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOML's own, and Python's about a number too long to read
        reading.problems.append(_broken(path, text, str(error)))
    except RecursionError:
        reading.problems.append(f"{path} is nested too deeply: write it with fewer levels")
    return {}


def _broken(path: pathlib.Path, text: str, why: str) -> str:
    place = _PLACE.search(why)
    if place is None:
        return f"{path} is not valid TOML: {why}"
    at = _end(text) if place[1] is None else f"line {place[1]}, column {place[2]}"
    return f"{path}, {at}: not valid TOML: {why[: place.start()]}"


def _end(text: str) -> str:
    """The place behind the last letter."""
    *before, last = text.split("\n")
    return f"line {len(before) + 1}, column {len(last) + 1}"
