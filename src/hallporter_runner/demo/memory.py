"""What the demo agent remembers of a session: how many messages it has had."""

from __future__ import annotations

import os
import re
from pathlib import Path

_FOLDER = ".demo"
_OURS = re.compile(r"demo-[0-9a-f]{16}")


class Memory:
    """A number in a file of the group's folder, one file a session.

    It is a courtesy: where the folder cannot be written, the count lasts as long as the runner.
    """

    def __init__(self, group: Path, *, session_id: str | None) -> None:
        # A foreign id could name a path; ours cannot.
        is_ours = session_id is not None and _OURS.fullmatch(session_id) is not None
        self.session_id = (session_id or "") if is_ours else f"demo-{os.urandom(8).hex()}"
        self._file = group / _FOLDER / self.session_id
        self._seen = self._read()

    def count(self, messages: int) -> int:
        """How many there have been, these included."""
        self._seen += messages
        fresh = self._file.with_suffix(".new")
        try:
            self._file.parent.mkdir(exist_ok=True)
            fresh.write_text(f"{self._seen}\n", encoding="ascii")
            fresh.replace(self._file)
        except OSError:
            pass
        return self._seen

    def _read(self) -> int:
        try:
            return int(self._file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0
