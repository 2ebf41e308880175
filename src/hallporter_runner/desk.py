"""The agent's desk: replies go out from it, follow-ups come in to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hallporter_runner.agents import Batch
from hallporter_runner.inbox import Inbox
from hallporter_wire.blocks import Block, encode_block

if TYPE_CHECKING:
    from pathlib import Path

    from hallporter_wire.follow_up import FollowUp


class Desk:
    """Counts what was taken up, so that each block says how far it reaches (R2).

    `session_id` is the agent's memory handle; every block carries the one that is set.
    """

    def __init__(self, *, input_folder: Path, output: int) -> None:
        self._input_folder = input_folder
        self._output = output
        self._inbox: Inbox | None = None
        self._through: int | None = None
        self.session_id: str | None = None

    def start(self, *, session_id: str | None, through: int | None) -> None:
        """What stdin brought is taken up."""
        self.session_id = session_id
        self._through = through

    def reply(self, text: str | None, *, more: bool = False) -> None:
        """Answer all that was taken up; None says nothing. `more` announces another reply."""
        self._emit(
            Block(
                status="success",
                result=text,
                session_id=self.session_id,
                through=self._through,
                idle=not more,
            )
        )

    def fail(self, error: str) -> None:
        """Say why there is no answer; the runner ends after it."""
        self._emit(Block(status="error", result=None, session_id=self.session_id, error=error))

    def next(self) -> Batch:
        """Wait for follow-ups and take them up; raises Closed when no more will come."""
        return self._take_up(self._opened_inbox().wait(None))

    def wait(self, seconds: float) -> Batch | None:
        """Follow-ups that arrive within the time, taken up; raises Closed like `next`."""
        follow_ups = self._opened_inbox().wait(seconds)
        return self._take_up(follow_ups) if follow_ups else None

    def _opened_inbox(self) -> Inbox:
        # On first use: an answer that is ready need not wait until the folder is watched.
        if self._inbox is None:
            self._inbox = Inbox(self._input_folder, output=self._output)
        return self._inbox

    def _take_up(self, follow_ups: tuple[FollowUp, ...]) -> Batch:
        numbers = (self._through, *(follow_up.through for follow_up in follow_ups))
        self._through = max((n for n in numbers if n is not None), default=None)
        return Batch(prompts=tuple(follow_up.text for follow_up in follow_ups))

    def _emit(self, block: Block) -> None:
        rest = memoryview(encode_block(block))
        while rest:
            rest = rest[os.write(self._output, rest) :]
