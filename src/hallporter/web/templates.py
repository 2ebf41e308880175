"""Templates and static files: read once, everything escaped unless a template says otherwise."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hallporter.web.markdown import render

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    found = {}
    for file in (resources.files("hallporter.web") / "static").iterdir():
        type_ = _TYPES.get("." + file.name.rpartition(".")[2])
        if type_ is not None:
            body = file.read_bytes()
            version = hashlib.sha256(body).hexdigest()[:12]
            found[file.name] = StaticFile(body=body, type=type_, version=version)
    return found


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
    return f"/static/{name}?v={static_files()[name].version}"
