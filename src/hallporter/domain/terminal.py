"""What a terminal would obey instead of showing it, and how to show it after all."""

from __future__ import annotations

import re

# Control characters but for line feed and tab, what turns the direction of text, and halves of
# characters, which cannot be written.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COMMANDS_AND_LINES = re.compile(f"[\t\n\u2028\u2029]|{_COMMANDS.pattern}")


def harmless(text: str) -> str:
    """Other people's words with a mark in place of each; their lines stay lines."""
    return _COMMANDS.sub("\ufffd", text.replace("\r\n", "\n"))


def escaped(text: str) -> str:
    """On one line, with a name in place of each: nothing of it can look like a line of ours."""
    return _COMMANDS_AND_LINES.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped_json(text: str) -> str:
    """JSON has a name for each of them, so nothing is lost."""
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
