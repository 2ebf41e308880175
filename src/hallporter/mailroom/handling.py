"""From a claimed request to its end: understood, carried out, answered, and done with."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import structlog

from hallporter.domain.command import SendMessage
from hallporter.domain.errors import UnavailableError, UnregisteredError
from hallporter.mailroom.claims import drop
from hallporter.mailroom.translation import to_command, to_details
from hallporter.switchboard.commands import Asked
from hallporter_wire.errors import WireError
from hallporter_wire.requests import decode_request
from hallporter_wire.results import Result, encode_result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hallporter.domain.command import Command
    from hallporter.domain.ids import Folder
    from hallporter.mailroom.claims import Claim
    from hallporter.mailroom.quarantine import Quarantine
    from hallporter.mailroom.results import Results
    from hallporter.ports import Clock
    from hallporter.switchboard.commands import Commands

log = structlog.get_logger(__name__)

T = TypeVar("T")

_AGAIN = timedelta(seconds=1)  # until the store is tried again


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A claim that was read: a command, or the reason why it is none."""

    claim: Claim
    command: Command | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    claim: Claim
    result: Result | None = None  # for the agent
    aside: str = ""  # why the operator should see it
    is_change: bool = False  # the agent may know something else now


def read(claim: Claim) -> Letter:
    """Not for the event loop: a request can be large."""
    if claim.problem:
        return Letter(claim=claim, problem=claim.problem)
    try:
        return Letter(claim=claim, command=to_command(decode_request(claim.content, claim.box)))
    except WireError as error:
        return Letter(claim=claim, problem=str(error))


class Handling:
    """What is done with letters, whichever folder they came from."""

    def __init__(
        self,
        *,
        commands: Commands,
        quarantine: Quarantine,
        results: Results,
        publish: Callable[[Folder], Awaitable[object]],
        clock: Clock,
    ) -> None:
        self._commands = commands
        self._quarantine = quarantine
        self._results = results
        self._publish = publish
        self._clock = clock

    async def settle(self, letters: Sequence[Letter]) -> None:
        """In their order; when it is cut short, the claims are still there for the next host."""
        # One by one: what takes longer to copy must not be overtaken.
        asked = [await self._asked(letter) for letter in letters]
        async with asyncio.TaskGroup() as tasks:
            # They reach the store in this order, and share its commits.
            answering = [
                tasks.create_task(self._answer(letter, asks))
                for letter, asks in zip(letters, asked, strict=True)
            ]
        answers = [task.result() for task in answering]
        for folder in {answer.claim.folder for answer in answers if answer.is_change}:
            # Before the result: an agent that looks again must find what it has done.
            await self._publish(folder)
        await asyncio.to_thread(self._finish, answers)

    async def _asked(self, letter: Letter) -> Asked | None:
        claim = letter.claim
        if letter.command is None:
            return None
        asked = Asked(
            id=claim.id,
            folder=claim.folder,
            box=claim.box,
            name=claim.name,
            command=letter.command,
        )
        try:
            return await self._patiently(asked, self._commands.prepare)
        except Exception:  # the border of a command: it is refused, the next one goes on
            log.exception("command.broke", id=claim.id)
            return asked

    async def _answer(self, letter: Letter, asked: Asked | None) -> _Answer:
        claim = letter.claim
        if asked is None:
            # Whoever gave it a name that cannot be used would not find it.
            result = Result(ok=False, error=letter.problem) if claim.is_own_name else None
            return _Answer(claim=claim, result=result, aside=letter.problem)
        try:
            carried = await self._patiently(asked, self._commands.carry_out)
        except UnregisteredError as error:
            return _Answer(claim=claim, aside=error.message)
        except Exception as error:  # the border of a command: the next one goes on
            log.exception("command.broke", id=claim.id)
            why = f"an unexpected {type(error).__name__}"
            return _Answer(claim=claim, result=Result(ok=False, error=why), aside=why)
        details = to_details(carried.result)
        result = Result(ok=carried.is_ok, error=carried.why or None, details=details)
        is_change = carried.is_ok and not isinstance(asked.command, SendMessage)
        return _Answer(claim=claim, result=result, is_change=is_change)

    async def _patiently(self, asked: Asked, act: Callable[[Asked], Awaitable[T]]) -> T:
        while True:
            try:
                return await act(asked)
            except UnavailableError as error:
                log.warning("command.waits", id=asked.id, why=error.message)
                await self._clock.sleep(_AGAIN)

    def _finish(self, answers: Sequence[_Answer]) -> None:
        results: dict[Folder, dict[str, bytes]] = defaultdict(dict)
        done = []
        for answer in answers:
            if answer.aside and not self._put_aside(answer):
                continue
            done.append(answer.claim)
            if answer.result is not None:
                results[answer.claim.folder][answer.claim.name] = encode_result(answer.result)
        for folder, told in results.items():
            self._results.put(folder, told, self._clock.now())
        for claim in done:
            drop(claim)

    def _put_aside(self, answer: _Answer) -> bool:
        try:
            self._quarantine.put(answer.claim, answer.aside)
        except OSError as error:
            # The claim stays: the next start tries again.
            log.warning("command.not_put_aside", id=answer.claim.id, error=str(error))
            return False
        return True
