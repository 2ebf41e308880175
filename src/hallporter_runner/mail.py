"""The way from the sandbox to the host: a request is left in a box, and its result is awaited."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hallporter_wire.errors import WireError
from hallporter_wire.fields import encode
from hallporter_wire.requests import MAX_REQUEST
from hallporter_wire.results import decode_result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Seconds that an agent waits before it goes on without an answer: less than the five that docs
# promise, for its own part takes time too.
PATIENCE = 4.5
_FIRST_LOOK, _LAST_LOOK = 0.002, 0.02  # seconds between looks, doubled from one to the other


class MailError(Exception):
    """The request did not succeed; the message is a sentence for the agent."""


class RefusedError(MailError):
    """The host has looked at the request and said no."""


class UnansweredError(MailError):
    """The host has taken longer than the agent waits; it acts on the request all the same."""


class Mail:
    """The `ipc` folder of one agent, as seen from inside its sandbox."""

    def __init__(self, ipc: Path, *, patience: float = PATIENCE) -> None:
        self._ipc = ipc
        self._patience = patience

    def post(self, box: str, request: Mapping[str, object]) -> Mapping[str, object]:
        """Leave a request and return what the host tells about it; raises MailError."""
        name = f"{time.time_ns() // 1_000_000}-{os.urandom(6).hex()}.json"
        data = encode(dict(request))
        if len(data) > MAX_REQUEST:
            raise MailError(
                f"the request has {len(data):,} bytes and the host takes {MAX_REQUEST:,}:"
                " shorten it"
            )
        self._leave(self._ipc / box / name, data)
        return _answer(self._await(self._ipc / "results" / name))

    def snapshot(self, name: str) -> object:
        """What the host last wrote for this agent to know; None when it wrote nothing yet."""
        try:
            return json.loads((self._ipc / name).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise MailError(f"{name} cannot be read: {error}") from error

    def _leave(self, path: Path, data: bytes) -> None:
        # Renamed into its name, so that the host never meets half a request.
        fresh = path.with_suffix(".tmp")
        try:
            fresh.write_bytes(data)
            fresh.rename(path)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            raise MailError(
                f"the request cannot be left in {path.parent}: {error.strerror}"
            ) from error

    def _await(self, path: Path) -> bytes:
        end = time.monotonic() + self._patience
        pause = _FIRST_LOOK
        while True:
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                pass
            except OSError as error:
                raise MailError(
                    f"the host has the request, but its answer cannot be read: {error.strerror}"
                ) from error
            else:
                # The host clears the folder too, but not at once.
                with suppress(OSError):
                    path.unlink()
                return data
            left = end - time.monotonic()
            if left <= 0:
                raise UnansweredError(
                    f"the host has not answered within {self._patience:g} s;"
                    " it will still act on it"
                )
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LAST_LOOK)


def _answer(data: bytes) -> Mapping[str, object]:
    try:
        result = decode_result(data)
    except WireError as error:
        raise MailError(f"the host's answer cannot be read: {error}") from error
    if not result.ok:
        raise RefusedError(result.error or "the host refused without a reason")
    return result.details
