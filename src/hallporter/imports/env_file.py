"""NanoClaw's `.env`: what of it holds for the groups, and what its owner must see to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.foreign import ForeignHouse
from hallporter.domain.group import check_assistant_name
from hallporter.domain.schedule import parse_zone
from hallporter.imports.place import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping

_USED = frozenset({"ASSISTANT_NAME", "TZ", "ASSISTANT_HAS_OWN_NUMBER"})
_SETTINGS = frozenset(
    {
        *("CONTAINER_TIMEOUT", "IDLE_TIMEOUT", "CONTAINER_MAX_OUTPUT_SIZE"),
        *("MAX_CONCURRENT_CONTAINERS", "LOG_LEVEL"),
    }
)
_NAME = "Andy"  # NanoClaw's own, when none is set


def read_env(project: int) -> Mapping[str, str]:
    """As NanoClaw reads it; one that is not there is empty. Raises `OSError`."""
    try:
        words = read_file(".env", project)
    except FileNotFoundError:
        return {}
    found = {}
    for line in words.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        if value and name.strip() and not name.lstrip().startswith("#"):
            found[name.strip()] = value
    return found


def house_of(env: Mapping[str, str]) -> ForeignHouse:
    """Secrets are named, never read on: whose they are is for their owner to say."""
    remarks = []
    name, zone = env.get("ASSISTANT_NAME", _NAME), env.get("TZ")
    try:
        name = check_assistant_name(name)
    except InvalidRequestError as error:
        remarks.append(f"ASSISTANT_NAME is not carried over: {error.message}")
        name = _NAME
    try:
        zone = None if zone is None else parse_zone(zone.removeprefix(":")).key
    except InvalidRequestError as error:
        remarks.append(f"TZ is not carried over: {error.message}")
        zone = None
    if settings := sorted(env.keys() & _SETTINGS):
        remarks.append(
            f"settings are not carried over: {', '.join(settings)}; the same names work in the"
            " .env of this home"
        )
    if others := sorted(env.keys() - _SETTINGS - _USED):
        remarks.append(
            f"keys and secrets are not carried over: {', '.join(others)}; what is needed here"
            " goes into the .env of this home, by hand"
        )
    return ForeignHouse(assistant_name=name, timezone=zone, remarks=tuple(remarks))


def says_who_is_us(env: Mapping[str, str]) -> bool:
    """Whether all that went out from the linked number was the assistant's."""
    return env.get("ASSISTANT_HAS_OWN_NUMBER") == "true"
