"""A running program with namespaces around it, as bubblewrap leaves it to us."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.sandboxes import leftovers
from hallporter.sandboxes.child import gone

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from hallporter.sandboxes.cgroups import Fence
    from hallporter.sandboxes.child import Child


class NamespaceBox:
    """Between us and the program stand bubblewrap's watcher, which is our child, and the box's
    first process, with which everything inside lives and dies."""

    def __init__(
        self, *, child: Child, status: int, depth: int, fence: Fence, mark: leftovers.Mark
    ) -> None:
        self._child = child
        self._depth = depth
        self._fence = fence
        self._mark = mark
        self._status: int | None = status
        self._said = b""
        self._first_pid: int | None = None
        self._first: int | None = None  # its pidfd
        self._ending = asyncio.Lock()
        self._is_cleared = False
        os.set_blocking(status, False)
        asyncio.get_running_loop().add_reader(status, self._listen)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def stdin(self) -> StreamWriter:
        return self._child.stdin

    @property
    def stdout(self) -> StreamReader:
        return self._child.stdout

    @property
    def stderr(self) -> StreamReader:
        return self._child.stderr

    def interrupt(self) -> None:
        self._send(signal.SIGINT)

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._listen()
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        self._child.send(signal.SIGKILL)

    async def wait(self) -> int:
        code = await self._child.exit_code()
        async with self._ending:
            if not self._is_cleared:
                await self._clear()
                self._is_cleared = True
        return code

    async def _clear(self) -> None:
        self._listen()
        if self._first is not None:
            # The watcher's end is its end, and it waits for everyone inside before it is gone.
            await gone(self._first)
            os.close(self._first)
            self._first = None
        elif self._first_pid is None:
            # Killed while the box was being made, before anything in it was tied to the watcher.
            await leftovers.end_box(self._mark)
        self._hang_up()
        await self._fence.remove()

    def _send(self, number: signal.Signals) -> None:
        self._listen()
        if self._child.has_exited:
            return
        program = self._program()
        if program is None:
            self.kill()  # not begun yet: nothing inside that could tidy up
            return
        with suppress(ProcessLookupError):
            os.kill(program, number)

    def _program(self) -> int | None:
        """Down from the first process, always to the eldest child: adopted ones come behind."""
        pid = self._first_pid
        for _ in range(self._depth):
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except OSError:
                return None
            if not children:
                return None
            pid = int(children[0])
        return pid

    def _listen(self) -> None:
        """Take in what bubblewrap says of the box: documents in JSON, one a line."""
        if self._status is None:
            return
        with suppress(BlockingIOError):
            while words := os.read(self._status, 4096):
                self._said += words
            self._hang_up()
        if self._first_pid is None and b"\n" in self._said:
            self._first_pid = json.loads(self._said.split(b"\n", 1)[0])["child-pid"]
            with suppress(ProcessLookupError):
                self._first = os.pidfd_open(self._first_pid)

    def _hang_up(self) -> None:
        if self._status is not None:
            asyncio.get_running_loop().remove_reader(self._status)
            os.close(self._status)
            self._status = None
