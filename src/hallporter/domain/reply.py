"""What of an agent's words may leave the house."""

from __future__ import annotations

import re

MAX_CHARS = 1_000_000  # of one reply; more is no longer something a person reads in a chat

# Possessive, so that no input costs more than its length; a tag whose end is far away or missing
# still opens: what stands behind it was not meant to be seen.
_TAG = re.compile(r"<\s*+(/?)\s*+internal\b(?:[^>]{0,200}+>)?+", re.IGNORECASE)


def strip_internal(text: str, *, hides_unclosed: bool = True) -> str:
    """The text without `<internal>` parts. In an agent's words an unclosed one hides all that
    follows; a person who types the tag must not lose what they said after it."""
    kept: list[str] = []
    depth = 0
    position = 0
    for tag in _TAG.finditer(text):
        if depth == 0:
            kept.append(text[position : tag.start()])
        if not tag.group().endswith("/>"):
            depth = max(0, depth - 1) if tag.group(1) else depth + 1
        position = tag.end()
    if depth == 0:
        kept.append(text[position:])
    elif not hides_unclosed:
        return _TAG.sub("", text).strip()
    return "".join(kept).strip()


def presentable(result: str | None) -> str:
    """What the chat gets to see of a block's result; empty means: say nothing."""
    if result is None:
        return ""
    text = strip_internal(result)
    if len(text) <= MAX_CHARS:
        return text
    return f"{text[:MAX_CHARS]}\n\n[cut here: the answer had {len(text):,} characters]"
