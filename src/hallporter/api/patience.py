"""How long a connection may keep us waiting: one that never asks anything costs a file handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_ASKING = (h11.IDLE, h11.SEND_BODY)  # what we wait for is theirs to send


class Patience(H11Protocol):
    """HTTP that hangs up when no whole request has come in time.

    uvicorn has a limit only for the silence between two requests, and a single byte lifts it.
    """

    patience: ClassVar[float] = 30.0  # seconds
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reconsider()

    def handle_events(self) -> None:
        super().handle_events()
        self._reconsider()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        super().connection_lost(exc)

    def _reconsider(self) -> None:
        if self.conn.their_state not in _ASKING:
            self._relax()
        elif self._deadline is None and not self.transport.is_closing():
            # Not `close`: that would wait for someone who may not read either.
            self._deadline = self.loop.call_later(self.patience, self.transport.abort)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
