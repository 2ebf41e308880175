"""What the host answers to a request: a file of the same name in `results/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hallporter_wire.errors import WireError
from hallporter_wire.fields import Fields, camel, encode, present

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`error` says why not; `details` is what there is to know otherwise."""

    ok: bool
    error: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)


def encode_result(result: Result) -> bytes:
    """One object; each detail in the spelling of both dialects."""
    told: dict[str, object] = {"ok": result.ok, "error": result.error}
    for name, value in result.details.items():
        told |= {name: value, camel(name): value}
    return encode(present(told))


def decode_result(data: bytes) -> Result:
    """As an agent reads it; raises WireError."""
    fields = Fields(data)
    ok = fields.flag("ok")
    if ok is None:
        raise WireError("is missing", field="ok")
    details = {name: value for name, value in fields.all().items() if name not in ("ok", "error")}
    return Result(ok=ok, error=fields.text("error"), details=details)
