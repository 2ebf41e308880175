"""Words for an agent that already runs: one file each in its input folder."""

from __future__ import annotations

from dataclasses import dataclass

from hallporter_wire.errors import WireError
from hallporter_wire.fields import Fields, encode, present

CLOSE = "_close"  # the name of the empty file that ends a program, and 000's type for the same


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """More messages: `text` as XML (001), `content` plain (000)."""

    text: str
    content: str
    through: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """No more will come: end."""


def file_name(number: int) -> str:
    """A name that sorts in the order of the numbers."""
    return f"{number:012d}.json"


def encode_follow_up(follow_up: FollowUp) -> bytes:
    """One object that a program of either dialect can read."""
    return encode(
        present(
            {
                "type": "message",
                "text": follow_up.text,
                "content": follow_up.content,
                "through": follow_up.through,
            }
        )
    )


def decode_follow_up(data: bytes) -> FollowUp | Close:
    """Read either dialect; raises WireError that names the field at fault."""
    fields = Fields(data)
    kind = fields.required_text("type")
    if kind == CLOSE:
        return Close()
    if kind != "message":
        raise WireError(f"must be 'message' or '{CLOSE}', not {kind!r}", field="type")
    text, content = fields.text("text"), fields.text("content")
    if text is None and content is None:
        raise WireError("is missing, and so is content", field="text")
    return FollowUp(
        text=(content or "") if text is None else text,
        content=(text or "") if content is None else content,
        through=fields.number("through"),
    )
