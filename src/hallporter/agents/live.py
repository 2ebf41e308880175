"""One running agent: its process, what it was given, and what it says."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from hallporter.agents.hearing import Hearing
from hallporter.agents.wording import file_of, stdin_of
from hallporter.domain.brief import Block, Exit, LateBlock
from hallporter.domain.coverage import Given
from hallporter_wire.blocks import BlockReader
from hallporter_wire.follow_up import file_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from hallporter.agents.run_log import RunLog
    from hallporter.agents.tray import Tray
    from hallporter.domain.brief import AgentSettings, Batch, Brief, Mount
    from hallporter.domain.ids import AgentId
    from hallporter.ports import Box, Clock

log = structlog.get_logger(__name__)

_CHUNK = 1 << 16  # bytes
_MAX_UNHEARD = 256  # blocks that wait to be stored before the program is no longer read


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a program is waited for."""

    close: timedelta = timedelta(seconds=5)  # from `_close` to SIGTERM, from there to SIGKILL
    stop: timedelta = timedelta(seconds=1.5)  # from the interrupt of /stop to SIGKILL
    # In which a null block behind a text may be NanoClaw's closing marker.
    closing_marker: timedelta = timedelta(seconds=2)
    farewell: timedelta = timedelta(seconds=2)  # for its last words, after its end
    house: timedelta = timedelta(seconds=1.5)  # as `close`, when the whole house ends
    task: timedelta = timedelta(seconds=10)  # from a task's result to `_close`


@dataclass(frozen=True, slots=True)
class Busy:
    """In a turn."""


@dataclass(frozen=True, slots=True)
class Warm:
    """Between turns; nobody's claim."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Closing:
    """Asked to end; never used again."""

    in_turn: bool


@dataclass(frozen=True, slots=True)
class Gone:
    """Ended."""

    code: int


State = Busy | Warm | Closing | Gone


class LiveAgent:
    """Talks to one process from its first word to its exit, through as many turns as it lives."""

    def __init__(
        self,
        *,
        name: AgentId,
        brief: Brief,
        box: Box,
        extras: tuple[Mount, ...],
        tray: Tray,
        run_log: RunLog,
        clock: Clock,
        speaks_through: bool,
        on_late: Callable[[LateBlock], Awaitable[None]],
        patience: Patience,
    ) -> None:
        self.name = name
        self.brief = brief
        self.extras = extras  # what it was shown from elsewhere
        self.epoch = brief.epoch
        self.state: State = Busy()
        self.started_at = clock.now()
        self.rested = asyncio.Event()  # no turn is open
        self._box = box
        self._tray = tray
        self._run_log = run_log
        self._clock = clock
        self._on_late = on_late
        self._patience = patience
        self._hearing = Hearing(
            first=Given(through=brief.batch.through, file=None),
            speaks_through=speaks_through,
            is_lying=tray.has,
            emit=self._emit,
            doubt=patience.closing_marker,
        )
        self._events: asyncio.Queue[Block | Exit] = asyncio.Queue()
        self._late_words: asyncio.Queue[LateBlock] = asyncio.Queue()
        self._heard = asyncio.Event()  # nothing stands in the way of reading on
        self._heard.set()
        self._files = 0
        self._late = 0
        self._gone = asyncio.Event()
        self._ending: asyncio.Lock = asyncio.Lock()

    # --- for the roster ---------------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self._box.pid

    @property
    def speaks_through(self) -> bool:
        """Whether its blocks say how far they reach."""
        return self._hearing.speaks_through

    @property
    def settings(self) -> AgentSettings:
        return self.brief.settings

    @property
    def may_rest(self) -> timedelta:
        """How long it is kept between turns; a task's agent only for its last words."""
        kept = self.settings.idle_timeout
        return kept if self.brief.task is None else min(kept, self._patience.task)

    def can_serve(self, brief: Brief) -> bool:
        """R7, R9, R11: never for a task or after one; only directly after its own turn, in the
        same session, unchanged."""
        return (
            isinstance(self.state, Warm)
            and brief.task is None
            and self.brief.task is None
            and brief.epoch == self.epoch + 1
            and brief.session_no == self.brief.session_no
            and brief.settings == self.settings
            and brief.group.is_main == self.brief.group.is_main
        )

    def attach(self, brief: Brief) -> None:
        """A new turn begins with this warm agent."""
        self.brief = brief
        self.epoch = brief.epoch
        self.state = Busy()
        self.rested.clear()
        self._hearing.forget()

    def rest(self, *, is_kept: bool) -> None:
        """The turn is over: what still comes is late (R8)."""
        if isinstance(self.state, Busy):
            self.state = Warm(self._clock.now()) if is_kept else Closing(in_turn=False)
        self.rested.set()
        while not self._events.empty():
            event = self._events.get_nowait()
            if isinstance(event, Block):
                self._say_late(event.text)

    async def run(self) -> None:
        """Talk to the process until it ends; whatever happens, the turn hears of the exit."""
        try:
            await self._talk()
        except Exception:  # the border of one agent: its neighbours live on
            log.exception("agent.broke", agent=self.name)
            self._box.kill()
        code = await self._box.wait()
        self._hearing.end(code)
        taken = self._hearing.taken()
        self.state = Gone(code)
        self._run_log.close(f"exit code {code}")
        self._events.put_nowait(Exit(code=code, taken=taken, why=_reason(code)))
        self._gone.set()
        log.info("agent.exited", agent=self.name, code=code)

    # --- for the seat -----------------------------------------------------------------------

    async def next_event(self) -> Block | Exit:
        event = await self._events.get()
        self._judge_pace()
        return event

    def give(self, batch: Batch) -> bool:
        """A follow-up as a file; False when the agent is ending."""
        if not isinstance(self.state, Busy):
            return False
        self._files += 1
        name = file_name(self._files)
        content = file_of(self.brief, batch, self._clock.now())
        self._hearing.expect(Given(through=batch.through, file=name))
        # Not in a thread: a block that is read between the write and its note would be misjudged.
        self._tray.put(name, content)
        log.debug("batch.written", agent=self.name, file=name, through=batch.through)
        return True

    # --- making an end ----------------------------------------------------------------------

    async def close(self, patience: timedelta | None = None) -> None:
        """`_close`, SIGTERM, SIGKILL, with patience before each; returns when it is gone."""
        patience = self._patience.close if patience is None else patience
        self._begin_ending()
        async with self._ending:
            if self._gone.is_set():
                return
            await asyncio.to_thread(self._tray.close)
            if await self._gone_within(patience):
                return
            log.warning("agent.ignores_close", agent=self.name)
            await self.terminate(patience)

    async def terminate(self, patience: timedelta | None = None) -> None:
        """SIGTERM, SIGKILL; returns when it is gone."""
        self._begin_ending()
        self._box.terminate()
        if not await self._gone_within(self._patience.close if patience is None else patience):
            await self.kill()

    async def stop(self) -> None:
        """Interrupt, then SIGKILL; returns when it is gone."""
        self._begin_ending()
        self._box.interrupt()
        if not await self._gone_within(self._patience.stop):
            await self.kill()

    async def kill(self) -> None:
        """At once; returns when it is gone."""
        self._begin_ending()
        self._box.kill()
        await self._gone.wait()

    def _begin_ending(self) -> None:
        if not isinstance(self.state, Closing | Gone):
            self.state = Closing(in_turn=isinstance(self.state, Busy))

    async def _gone_within(self, patience: timedelta) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                await self._gone.wait()
        return self._gone.is_set()

    # --- the process ------------------------------------------------------------------------

    async def _talk(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            late = tasks.create_task(self._tell_late(), name=f"late:{self.name}")
            pipes = [
                tasks.create_task(self._write_stdin(), name=f"stdin:{self.name}"),
                tasks.create_task(self._read_stderr(), name=f"stderr:{self.name}"),
                tasks.create_task(self._read_stdout(), name=f"stdout:{self.name}"),
            ]
            await self._box.wait()
            # A stray that hides from its box may hold a pipe open for ever.
            await asyncio.wait(pipes, timeout=self._patience.farewell.total_seconds())
            for pipe in pipes:
                pipe.cancel()
            await self._late_words.join()
            late.cancel()

    async def _tell_late(self) -> None:
        while True:
            await self._on_late(await self._late_words.get())
            self._late_words.task_done()
            self._judge_pace()

    async def _write_stdin(self) -> None:
        stdin = self._box.stdin
        # A program that ends without reading is judged by its exit, not by the broken pipe.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(stdin_of(self.brief))
            await stdin.drain()
        stdin.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await stdin.wait_closed()

    async def _read_stderr(self) -> None:
        while data := await self._box.stderr.read(_CHUNK):
            self._run_log.write("stderr", data)

    async def _read_stdout(self) -> None:
        reader = BlockReader()
        while data := await self._box.stdout.read(_CHUNK):
            self._run_log.write("stdout", data)
            for found in reader.feed(data):
                self._hearing.hear(found)
            await self._heard.wait()
        for found in reader.close():
            self._hearing.hear(found)

    def _emit(self, block: Block) -> None:
        match self.state:
            case Warm() if block.text:
                self.state = Warm(self._clock.now())
                self._say_late(block.text)
            case Warm() | Closing(in_turn=False):
                self._say_late(block.text)
            case _:
                self._events.put_nowait(block)
                self._judge_pace()

    def _say_late(self, text: str | None) -> None:
        if text:
            self._late += 1
            block = LateBlock(
                agent=self.name,
                number=self._late,
                chat=self.brief.chat,
                epoch=self.epoch,
                text=text,
            )
            self._late_words.put_nowait(block)
            self._judge_pace()

    def _judge_pace(self) -> None:
        """A program that talks faster than its words can be stored must wait."""
        if self._events.qsize() + self._late_words.qsize() < _MAX_UNHEARD:
            self._heard.set()
        else:
            self._heard.clear()


def _reason(code: int) -> str:
    if code == 0:
        return "the agent ended without an answer"
    if code == 137:  # noqa: PLR2004  128 + SIGKILL, which is also how a memory limit ends a program
        return "the agent was killed (out of memory, or by hand)"
    return f"the agent ended without an answer (exit code {code})"
