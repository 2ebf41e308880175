"""Templates and static files: read once, everything escaped unless a template says otherwise."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hallporter.web.markdown import render

if TYPE_CHECKING:
    from collections.abc import Mapping

_IMPORT = re.compile(rb'(?<=from "\./)[a-z-]+\.js(?=")')
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """`version` is of its content, so that a browser may keep it for ever."""

    body: bytes
    type: str
    version: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """By name."""
    files = (resources.files("hallporter.web") / "static").iterdir()
    return {file.name: _static_file(file.name) for file in files if _suffix(file.name) in _TYPES}


@cache
def _static_file(name: str) -> StaticFile:
    body = (resources.files("hallporter.web") / "static" / name).read_bytes()
    # A script names the version of what it imports: so a change there changes its own too.
    body = _IMPORT.sub(lambda found: _versioned(found[0].decode()).encode(), body)
    version = hashlib.sha256(body).hexdigest()[:12]
    return StaticFile(body=body, type=_TYPES[_suffix(name)], version=version)


def _suffix(name: str) -> str:
    return "." + name.rpartition(".")[2]


def _versioned(name: str) -> str:
    return f"{name}?v={_static_file(name).version}"


def fill(template: str, **values: object) -> str:
    """A page, or a piece of one."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hallporter.web"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # a stat for each piece of each page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = _markdown
    environment.globals["static"] = _static
    return environment


def _markdown(text: str) -> Markup:
    return Markup(render(text))  # noqa: S704  its promise is to be safe


def _static(name: str) -> str:
    return f"/static/{_versioned(name)}"
