"""A program the host has started: its pipes, its signals, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING

from hallporter.domain.errors import AgentFailedError

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Mapping, Sequence

_READ_LIMIT = 1 << 20  # bytes held for a reader that is behind; the pipe holds back the rest
_PATIENCE = 5.0  # seconds for a killed process to be gone


class Child:
    """One process of ours.

    Watched through a pidfd, with pipes of our own: asyncio's subprocess takes a thread for each
    child on Python 3.11, and its `wait` may not return while a stray holds a pipe open.
    """

    def __init__(
        self,
        *,
        process: subprocess.Popen[bytes],
        stdin: StreamWriter,
        stdout: StreamReader,
        stderr: StreamReader,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._process = process
        self._exited = asyncio.Event()
        self._pidfd = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_exited(self) -> bool:
        return self._exited.is_set()

    def send(self, number: signal.Signals) -> None:
        """A child that is gone already is no error."""
        if not self.has_exited:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    async def exit_code(self) -> int:
        """128 + the signal's number when one ended it."""
        await self._exited.wait()
        code: int = self._process.returncode
        return code if code >= 0 else 128 - code

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self._exited.set()
        self.stdin.close()


async def start(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    workdir: str = "/",
    pass_fds: Sequence[int] = (),
    pipes_for: int | None = None,
) -> Child:
    """Start a program in a session of its own; raises `AgentFailedError`.

    `pipes_for` is the user who may reopen the pipes (as /dev/stderr and the like) when it is not
    ours. Call it on the main thread: "die with your parent" means the thread that started you.
    """
    try:
        with ExitStack() as theirs, ExitStack() as ours:
            stdin_end, stdin_pipe = _pipe(theirs, ours, writes=True)
            stdout_end, stdout_pipe = _pipe(theirs, ours, writes=False)
            stderr_end, stderr_pipe = _pipe(theirs, ours, writes=False)
            ends = (stdin_end, stdout_end, stderr_end)
            if pipes_for is not None:
                for end in ends:
                    os.fchown(end, pipes_for, pipes_for)
            stdin = await _writer(stdin_pipe, ours)
            stdout = await _reader(stdout_pipe, ours)
            stderr = await _reader(stderr_pipe, ours)
            # No await from here on: a start that is cancelled leaves no process behind.
            process = _spawn(argv, ends, environment, workdir, pass_fds)
            try:
                child = Child(process=process, stdin=stdin, stdout=stdout, stderr=stderr)
            except OSError:  # it cannot be watched, so it must not run
                process.kill()
                process.wait()
                raise
            ours.pop_all()
            return child
    except OSError as error:
        raise AgentFailedError(f"The agent could not be started: {error}", argv=argv[0]) from error


async def gone(pidfd: int) -> bool:
    """Wait for a killed process, ours or not, to be gone; False when it takes too long."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(pidfd, ended.set)
    try:
        async with asyncio.timeout(_PATIENCE):
            await ended.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(pidfd)
    return True


def _spawn(
    argv: Sequence[str],
    ends: tuple[int, int, int],
    environment: Mapping[str, str],
    workdir: str,
    pass_fds: Sequence[int],
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=ends[0],
        stdout=ends[1],
        stderr=ends[2],
        env=environment,
        cwd=workdir,
        pass_fds=pass_fds,
        start_new_session=True,
    )


def _pipe(theirs: ExitStack, ours: ExitStack, *, writes: bool) -> tuple[int, IO[bytes]]:
    """The child's end and ours; `writes` is about ours."""
    read, write = os.pipe()
    their_end, our_end = (read, write) if writes else (write, read)
    theirs.callback(os.close, their_end)
    return their_end, ours.enter_context(os.fdopen(our_end, "wb" if writes else "rb", 0))


async def _reader(pipe: IO[bytes], ours: ExitStack) -> StreamReader:
    reader = asyncio.StreamReader(limit=_READ_LIMIT)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    ours.callback(transport.close)
    return reader


async def _writer(pipe: IO[bytes], ours: ExitStack) -> StreamWriter:
    loop = asyncio.get_running_loop()
    # The protocol is wanted for its flow control; nothing is ever read from this pipe.
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
    )
    ours.callback(transport.close)
    return asyncio.StreamWriter(transport, protocol, None, loop)
