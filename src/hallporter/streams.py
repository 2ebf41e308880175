"""A chat as it happens: server-sent events that resume where a reader left off."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
from starlette.responses import Response

from hallporter.domain.errors import HallporterError
from hallporter.domain.happening import (
    AccessChanged,
    ChatForgotten,
    Lagged,
    MessageStored,
    TurnChanged,
    TypingChanged,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from hallporter.domain.happening import Happening
    from hallporter.domain.ids import ChatId, MessageId, TurnId
    from hallporter.domain.message import Message
    from hallporter.domain.turn import Turn
    from hallporter.ports import Clock, Feed
    from hallporter.switchboard.story import Story

log = structlog.get_logger(__name__)

_KEEP_ALIVE = timedelta(seconds=15)  # proxies cut connections that are silent for a minute
_RETRY = 2000  # milliseconds that a browser waits before it connects again
_AT_ONCE = 200  # messages read in one go, at most


class EventStream(Response):
    """Listens to the feed before it looks into the store, so nothing falls between the two; what
    the feed says is a hint only, the words come from the store. `after` is a sequence number;
    without it the stream begins with what comes next; `spell` gives a message's `data:`, on one
    line; the stream ends when `recognise` refuses the reader."""

    def __init__(
        self,
        *,
        chat: ChatId,
        after: int | None,
        story: Story,
        feed: Feed,
        clock: Clock,
        recognise: Callable[[], Awaitable[object]],
        spell: Callable[[Message], Awaitable[str]],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status_code = 200
        self.media_type = "text/event-stream"
        self.background = None
        mine = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        self.init_headers({**mine, **(headers or {})})
        self._chat = chat
        self._after = after
        self._story = story
        self._feed = feed
        self._clock = clock
        self._recognise = recognise
        self._spell = spell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._feed.subscribe(self._chat) as events:
            head, turn = await self._story.standing(self._chat)
            # Numbers we have not given out yet are of another database: begin at its end.
            seq = head if self._after is None else min(self._after, head)
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            reader = _Reader(
                chat=self._chat,
                seq=seq,
                story=self._story,
                clock=self._clock,
                send=send,
                recognise=self._recognise,
                spell=self._spell,
            )
            async with asyncio.TaskGroup() as tasks:
                lives = [
                    tasks.create_task(
                        reader.follow(events, turn, is_back=self._after is not None),
                        name=f"stream:{self._chat}",
                    ),
                    tasks.create_task(self._keep(reader), name=f"keep-alive:{self._chat}"),
                    tasks.create_task(_gone(receive), name=f"disconnect:{self._chat}"),
                ]
                await asyncio.wait(lives, return_when=asyncio.FIRST_COMPLETED)
                for life in lives:
                    life.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _keep(self, reader: _Reader) -> None:
        """Ends when the reader's right to read does."""
        while True:
            await self._clock.sleep(_KEEP_ALIVE)
            try:
                await self._recognise()
            except HallporterError:
                return
            await reader.write(": still here\n\n")


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Reader:
    """One who reads along; `seq` is the last message they were given."""

    def __init__(
        self,
        *,
        chat: ChatId,
        seq: int,
        story: Story,
        clock: Clock,
        send: Send,
        recognise: Callable[[], Awaitable[object]],
        spell: Callable[[Message], Awaitable[str]],
    ) -> None:
        self._chat = chat
        self._seq = seq
        self._recognise = recognise
        self._story = story
        self._clock = clock
        self._send = send
        self._spell = spell
        self._turn: TurnId | None = None  # they were told that it runs

    async def follow(
        self, events: AsyncIterator[Happening], turn: Turn | None, *, is_back: bool
    ) -> None:
        """Ends with the feed, with the right to read, or when the store is away: the reader comes
        again. `is_back`: they have read here before."""
        try:
            await self.write(f"retry: {_RETRY}\n\n")
            if is_back:
                await self._tell_if_forgotten()
            await self._catch_up()
            await self._tell_standing(turn)
            async for event in events:
                await self._tell(event)
        except HallporterError as error:
            log.warning("stream.ended", chat=self._chat, error=error.message)

    async def write(self, text: str) -> None:
        await self._send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def _tell(self, event: Happening) -> None:
        match event:
            case MessageStored(seq=seq) if seq > self._seq:
                await self._catch_up()
            case TypingChanged(typing=typing):
                await self._tell_typing(typing=typing)
            case TurnChanged(turn=turn, state=state, covers=covers):
                if state != "started":
                    await self._tell_turn(turn, state, covers)
                elif turn != self._turn:
                    await self._tell_start(turn, covers, timedelta(0))
            case ChatForgotten():
                await self._tell_forgotten()
            case AccessChanged():
                await self._recognise()
            case Lagged():
                await self._recognise()
                await self._tell_if_forgotten()
                await self._catch_up()
                _, open_turn = await self._story.standing(self._chat)
                await self._tell_standing(open_turn)
                if open_turn is None:
                    await self._tell_typing(typing=False)
            case _:
                pass

    async def _catch_up(self) -> None:
        while messages := await self._story.since(self._chat, self._seq, _AT_ONCE):
            for message in messages:
                data = await self._spell(message)
                await self.write(f"id: {message.seq}\nevent: message\ndata: {data}\n\n")
                self._seq = message.seq

    async def _tell_if_forgotten(self) -> None:
        """What they have read may have gone while they were not told."""
        if self._seq and not await self._story.before(self._chat, self._seq + 1, 1):
            await self._tell_forgotten()

    async def _tell_forgotten(self) -> None:
        data = json.dumps({"chat": self._chat})
        await self.write(f"event: forgotten\ndata: {data}\n\n")

    async def _tell_standing(self, turn: Turn | None) -> None:
        if turn is None or turn.id == self._turn:
            return
        covers = await self._story.given_in(turn)
        await self._tell_start(turn.id, covers, self._clock.now() - turn.started_at)
        await self._tell_typing(typing=True)

    async def _tell_start(self, turn: TurnId, covers: Sequence[MessageId], age: timedelta) -> None:
        # How long ago and not when: a reader's clock may differ from ours.
        await self._tell_turn(turn, "started", covers, age=age.total_seconds())
        self._turn = turn

    async def _tell_turn(
        self, turn: TurnId, state: str, covers: Sequence[MessageId], **more: float
    ) -> None:
        self._turn = None
        data = {"chat": self._chat, "turn": turn, "state": state, "covers": list(covers), **more}
        await self.write(f"event: turn\ndata: {json.dumps(data)}\n\n")

    async def _tell_typing(self, *, typing: bool) -> None:
        data = json.dumps({"chat": self._chat, "typing": typing})
        await self.write(f"event: typing\ndata: {data}\n\n")
