"""Understanding a program: what it printed becomes blocks that say how far they reach (R2, R3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.brief import Block
from hallporter.domain.coverage import Given, cover
from hallporter_wire.blocks import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from hallporter_wire.blocks import Block as WireBlock

log = structlog.get_logger(__name__)

_MAX_SESSION_ID = 1024  # characters; it is read with every row of its chat
_MAX_WHY = 500  # characters of a program's own words in a notice to the chat


class Hearing:
    """`is_lying` tells whether the program has left a file in its tray; `emit` gets the blocks.

    A null block right behind a text may be NanoClaw's closing marker: it is held back for
    `doubt`, and counts only if nothing follows.
    """

    def __init__(
        self,
        *,
        first: Given,
        speaks_through: bool,
        is_lying: Callable[[str], bool],
        emit: Callable[[Block], None],
        doubt: timedelta,
    ) -> None:
        self.speaks_through = speaks_through
        self._is_lying = is_lying
        self._emit = emit
        self._doubt = doubt
        self._given = [first]
        self._covered = 0
        self._last_had_text = False
        self._held: WireBlock | None = None
        self._held_until: asyncio.TimerHandle | None = None

    def forget(self) -> None:
        """A new turn begins: what was given before is settled."""
        self._given.clear()

    def expect(self, given: Given) -> None:
        """One more batch is out."""
        self._given.append(given)

    def taken(self) -> int:
        """The highest number that the program has taken up in this turn."""
        return max((given.through for given in self._given if self._is_taken(given)), default=0)

    def hear(self, found: WireBlock | Malformed) -> None:
        """The next thing it said."""
        self._drop_held()
        if isinstance(found, Malformed):
            log.warning("block.malformed", reason=found.reason)
            self._emit(_error(f"the agent's output could not be read ({found.reason})"))
            return
        if found.status == "error":
            self._emit(_error(found.error or found.result or "the agent reported an error"))
            return
        was_text, self._last_had_text = self._last_had_text, bool(found.result)
        if found.through is not None:
            self.speaks_through = True
        if self.speaks_through:
            self._succeed(found, found.through or 0, idle=found.idle is not False)
        elif not found.result and was_text and self._given and self._is_taken(self._given[-1]):
            self._hold(found)
        else:
            self._work_out(found)

    def end(self, code: int) -> None:
        """It is gone. A null block in doubt counts after a clean end; after any other, what it
        would cover is better asked again than lost."""
        if code == 0:
            self._let_go()
        else:
            self._drop_held()

    def _work_out(self, found: WireBlock) -> None:
        """R3: one batch is out at a time, and the program does not say what it answers."""
        outstanding = self._given[-1] if self._given else None
        is_gone = outstanding is None or self._is_taken(outstanding)
        reach = cover(outstanding, is_file_gone=is_gone, before=self._covered)
        if reach.idle:
            self._given.clear()
        self._covered = reach.through
        self._succeed(found, reach.through, idle=reach.idle)

    def _succeed(self, found: WireBlock, through: int, *, idle: bool) -> None:
        session_id = found.session_id
        if session_id is not None and len(session_id) > _MAX_SESSION_ID:
            log.warning("session.id_too_long", chars=len(session_id))
            session_id = None
        self._emit(
            Block(
                is_error=False,
                text=found.result,
                session_id=session_id,
                error="",
                through=through,
                idle=idle,
            )
        )

    def _hold(self, found: WireBlock) -> None:
        loop = asyncio.get_running_loop()
        self._held = found
        self._held_until = loop.call_later(self._doubt.total_seconds(), self._let_go)

    def _let_go(self) -> None:
        held = self._held
        self._drop_held()
        if held is not None:
            self._work_out(held)

    def _drop_held(self) -> None:
        if self._held_until is not None:
            self._held_until.cancel()
        self._held = self._held_until = None

    def _is_taken(self, given: Given) -> bool:
        return given.file is None or not self._is_lying(given.file)


def _error(why: str) -> Block:
    why = why if len(why) <= _MAX_WHY else f"{why[:_MAX_WHY]}…"
    return Block(is_error=True, text=None, session_id=None, error=why, through=0, idle=False)
