"""The seams of the house: what the switchboard needs from the rooms around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime, timedelta

    from starlette.types import ASGIApp

    from hallporter.books import Tx
    from hallporter.domain.brief import (
        Batch,
        Block,
        Brief,
        Exit,
        Fitness,
        Launch,
        Snapshots,
    )
    from hallporter.domain.chat import ChatSeen
    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.group import Group
    from hallporter.domain.happening import Happening
    from hallporter.domain.ids import ChatId, Pool
    from hallporter.domain.message import Inbound

T = TypeVar("T")


class Clock(Protocol):
    """Time is asked for, never taken."""

    def now(self) -> datetime:
        """Aware, UTC."""
        ...

    async def sleep(self, delay: timedelta) -> None: ...


# --- channels -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a network can do. `limit` is in characters of one network message, None without one."""

    limit: int | None
    typing: bool
    takes_message_id: bool  # a repeated send under the same id is shown once
    files: bool  # can go along with a message


@dataclass(frozen=True, slots=True)
class Health:
    """Whether something works; `why` says what is wrong, or what it waits for."""

    ok: bool
    why: str = ""


class Switchboard(Protocol):
    """The two callbacks a channel gets (001 4.2)."""

    async def on_message(self, message: Inbound) -> None:
        """Returns once the message is durable: only then may the network be told so."""

    async def on_chat(self, what: ChatSeen) -> None:
        """Every chat that a channel meets, registered or not."""


class Channel(Protocol):
    """A chat network we are linked to."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def http(self) -> ASGIApp | None:
        """The channel's own web surface (webhooks, pairing), mounted by wiring."""
        ...

    def owns(self, chat: ChatId) -> bool: ...
    async def connect(self, switchboard: Switchboard) -> None: ...
    async def disconnect(self) -> None: ...
    def health(self) -> Health: ...
    def compose(self, markdown: str) -> tuple[str, ...]:
        """The bodies to send, in this network's dialect and within its limit; never empty."""
        ...

    async def send(
        self, chat: ChatId, body: str, message_id: str, files: Sequence[Enclosure] = ()
    ) -> None:
        """Returns when the network has it; `ChannelDownError` waits, `MessageRefusedError` is
        final. There are files only where the network takes some; a body may be empty then."""

    async def typing(self, chat: ChatId, *, is_typing: bool) -> None: ...


@runtime_checkable
class Refreshing(Protocol):
    """A channel whose network can be asked which chats there are."""

    async def refresh(self) -> None:
        """Tells of each by `on_chat`; returns when all are told."""


# --- agents -------------------------------------------------------------------------------------


class Seat(Protocol):
    """One agent during one turn."""

    def events(self) -> AsyncIterator[Block | Exit]:
        """Ends after an `Exit`."""
        ...

    @property
    def takes_more(self) -> bool:
        """Whether a follow-up may be given now. A program that does not say how far its answers
        reach gets one batch at a time (R3)."""
        ...

    async def feed(self, batch: Batch) -> bool:
        """Give a follow-up. False: too late; it stays beyond the cursor and comes again."""
        ...

    async def stop(self) -> None:
        """Interrupt, and make an end within two seconds."""

    def dismiss(self) -> None:
        """Do not keep the agent warm after this turn."""


class Agent(Protocol):
    """Who answers. Warm or new is decided here; the exchange never knows."""

    def seat(self, brief: Brief) -> AbstractAsyncContextManager[Seat]:
        """Raises `RefusedError` (bad settings) or `UnavailableError` (could not start)."""
        ...

    async def forget(self, chat: ChatId) -> None:
        """Close the agent of this chat if it is warm."""


# --- mail ---------------------------------------------------------------------------------------


class Mail(Protocol):
    """The files between host and sandbox."""

    async def announce(self, group: Group) -> Snapshots:
        """Write into the group's folder what its agent may know now; before each run."""
        ...

    async def drain(self, group: Group) -> None:
        """Carry out the messages that lie in the group's folder by now (R12)."""


# --- sandboxes ----------------------------------------------------------------------------------


class Box(Protocol):
    """A running program in its sandbox."""

    @property
    def pid(self) -> int:
        """The process we started; its end is the box's end."""
        ...

    @property
    def stdin(self) -> StreamWriter: ...
    @property
    def stdout(self) -> StreamReader: ...
    @property
    def stderr(self) -> StreamReader: ...
    def interrupt(self) -> None:
        """SIGINT to the program inside; a program that is gone already is no error."""

    def terminate(self) -> None:
        """SIGTERM to the program inside."""

    def kill(self) -> None:
        """End everything in the box at once, also what it forked."""

    async def wait(self) -> int:
        """The exit code (128 + signal when killed); returns once nothing of the box is left."""
        ...


class Sandbox(Protocol):
    """Where a runner lives."""

    @property
    def name(self) -> str: ...
    async def probe(self) -> Fitness:
        """Run something real in it and tell what works, what is not enforced and what to mind."""
        ...

    async def launch(self, launch: Launch) -> Box:
        """Raises `AgentRefusedError` when it can never work, `AgentFailedError` otherwise."""
        ...

    async def sweep(self) -> int:
        """End what an earlier host of this home left running; how many."""
        ...


# --- store and feed -----------------------------------------------------------------------------


class Store(Protocol):
    """What survives a restart."""

    async def write(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` as one durable transaction. It is synchronous: none can span an await."""
        ...

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` on one consistent view; it must not write."""
        ...

    async def scrub(self) -> bool:
        """Leave no trace in the store's files of what was deleted. False: someone holds an older
        state open; try again later. Raises `StoreUnavailableError`."""
        ...


class Feed(Protocol):
    """News after commit; bounded, so a slow reader gets `Lagged` and looks into the store."""

    def publish(self, event: Happening) -> None: ...
    def subscribe(
        self, chat: ChatId | None
    ) -> AbstractAsyncContextManager[AsyncIterator[Happening]]:
        """What happens from now on in one chat, or in all of them; ends when the house closes."""
        ...


# --- engine -------------------------------------------------------------------------------------


class Signals(Protocol):
    """What the engine tells a running turn: `more` came in, or it must `stop`."""

    async def wait(self) -> frozenset[str]:
        """The signals since the last call; blocks until there is one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHealth:
    """How the line looks."""

    ok: bool
    why: str
    waiting: int
    running: int
    oldest_wait: timedelta | None
    pools: Mapping[Pool, tuple[int, int]]  # in use, size


class Engine(Protocol):
    """Who runs what, when. It only wakes, locks and spreads; the truth is in the store."""

    async def serve(self, run: Callable[[ChatId, Signals], Awaitable[None]]) -> None:
        """Run chats, one turn each at a time, oldest wait first; returns after `stop`."""

    def wake(self, tx: Tx, chat: ChatId, not_before: datetime | None = None) -> None:
        """In the same transaction as what it is woken for."""

    def ring(self, tx: Tx, chat: ChatId) -> None:
        """A tick is due in this chat: it waits for no backoff. In the transaction of its row."""

    def signal(self, chat: ChatId, kind: str) -> None:
        """To the turn that holds the chat now; nobody there is no error."""

    async def stop(self, drain: timedelta) -> None:
        """No new turns; running ones get `drain` to end, then they are cut short."""

    def health(self) -> EngineHealth: ...
