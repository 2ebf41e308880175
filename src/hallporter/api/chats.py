"""The web chat over HTTP: say something, read, follow, and learn what became of it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from pydantic import BaseModel, Field
from starlette.requests import Request

from hallporter.api.desk import At, Desk
from hallporter.api.errors import Problem
from hallporter.api.identity import Asks, bearer
from hallporter.api.transcript import (
    FateJson,
    MessagesJson,
    fate_json,
    message_json,
)
from hallporter.domain.errors import InvalidRequestError, NotFoundError, TooLargeError
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Inbound, Message
from hallporter.domain.token import OPERATOR
from hallporter.streams import EventStream

router = APIRouter(tags=["chats"], dependencies=[bearer])

_MAX_SENDER = 200  # characters
_MAX_TEXT = 100_000  # characters
_MAX_DIGITS = 18  # of a sequence number: what a database's integer holds

InChat = Annotated[str, Path(description="A chat's id.", examples=["web:main"], max_length=300)]


async def _opened(chat: InChat, desk: At, caller: Asks) -> ChatId:
    found = ChatId(chat)
    # One answer for both: who has no token for a chat must not learn whether it exists.
    if not caller.may_use(found) or not await desk.story.is_open(found):
        raise NotFoundError(f"no chat {chat!r} is registered here", chat=chat)
    return found


OpenChat = Annotated[ChatId, Depends(_opened)]


class Saying(BaseModel):
    """What to say."""

    text: str = Field(
        description=f"The words, in Markdown; not empty, at most {_MAX_TEXT} characters.",
        examples=["hello"],
    )
    sender: str | None = Field(
        None,
        max_length=_MAX_SENDER,
        description="A display name. With an operator's token: the person to speak for.",
    )
    id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._:-]{1,128}$",
        description="Your id for it: posting the same id again is harmless.",
    )


class Said(BaseModel):
    """It is stored, and will have a fate."""

    id: str
    chat: str


@router.post(
    "/api/chats/{chat}/messages",
    status_code=202,
    summary="Say something",
    description="Durable when it answers. 202 the first time, 200 when this id is there already.",
    responses={
        200: {"model": Said},
        400: {"model": Problem},
        404: {"model": Problem},
        413: {"model": Problem},
    },
)
async def say(chat: OpenChat, saying: Saying, desk: At, caller: Asks, response: Response) -> Said:
    if not desk.web.owns(chat):
        channel = desk.channel_of(chat)
        message = (
            "this chat's channel is not set up here, so nobody can write to it: set it up first"
            if channel is None
            else f"this chat belongs to channel {channel.name}: write to it there"
        )
        raise InvalidRequestError(message, field="chat", value=chat)
    if not saying.text.strip():
        raise InvalidRequestError("text is empty: say something", field="text", value="")
    if len(saying.text) > _MAX_TEXT:
        message = (
            f"the text has {len(saying.text)} characters, and one message has at most {_MAX_TEXT}:"
            " say it in several messages"
        )
        raise TooLargeError(message, field="text", limit=_MAX_TEXT)
    own = saying.id or desk.new_id("m")
    shown = " ".join((saying.sender or "").split()) or caller.subject
    if not caller.is_operator and shown.casefold() in await _taken_names(desk, chat):
        message = f"the name {shown!r} is taken in this house: choose another"
        raise InvalidRequestError(message, field="sender", value=shown)
    if not caller.is_operator and caller.subject == OPERATOR:
        message = f"this token is for {OPERATOR!r}, as the house's own is: make one for another"
        raise InvalidRequestError(message, field="subject", value=caller.subject)
    inbound = Inbound(
        chat=chat,
        ext_id=own,
        # Only an operator may speak for another; a consumer's `sender` is how they are shown.
        sender=shown if caller.is_operator else caller.subject,
        sender_name=shown,
        text=saying.text,
        sent_at=desk.clock.now(),
        # An id that is taken elsewhere must not show to those who may not look there.
        preferred_id=MessageId(own) if caller.is_operator or saying.id is None else None,
    )
    accepted = await desk.intake.accept(inbound)
    if not accepted.is_new:
        response.status_code = 200
    return Said(id=accepted.message.id, chat=chat)


@router.get(
    "/api/chats/{chat}/messages",
    summary="Read",
    description="What people and we have said, oldest first, page by page. A page of long messages"
    " has fewer than `limit`; there are more as long as `next` is not null.",
    responses={400: {"model": Problem}, 404: {"model": Problem}},
)
async def read(
    chat: OpenChat,
    desk: At,
    after: Annotated[str | None, Query(description="The id of a message: read on.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> MessagesJson:
    page = await desk.story.page(chat, after=after, limit=limit)
    return MessagesJson(messages=[message_json(one) for one in page.messages], next=page.next)


@router.get(
    "/api/chats/{chat}/events",
    summary="Follow",
    description=(
        "Server-sent events: `message` (a message as above, with an `id:` to resume from),"
        " `typing` (`{chat, typing}`), `turn` (`{chat, turn, state, covers}`, state `started`,"
        " `answered`, `silent`, `failed` or `stopped`; at `started` also `age`, the seconds for"
        " which it has run), and `forgotten` (`{chat}`: all that was said until then is gone)."
        " With `Last-Event-ID` or `after` it begins"
        " behind that message, without them with what comes next."
    ),
    status_code=200,
    response_class=EventStream,
    responses={
        200: {"content": {"text/event-stream": {}}},
        400: {"model": Problem},
        404: {"model": Problem},
    },
)
async def follow(
    chat: OpenChat,
    desk: At,
    request: Request,
    last_event_id: Annotated[str | None, Header(description="The last `id:` seen.")] = None,
    after: Annotated[str | None, Query(description="The id of a message.")] = None,
) -> EventStream:
    place = None
    if last_event_id:  # a browser that comes again sends it beside the `after` of the first time
        place = _sequence_number(last_event_id)
    elif after is not None:
        place = await desk.story.place_of(chat, after)
    return EventStream(
        chat=chat,
        after=place,
        story=desk.story,
        feed=desk.feed,
        clock=desk.clock,
        recognise=partial(_still_reads, desk, chat, request.headers["authorization"]),
        spell=_spelled,
    )


@router.get(
    "/api/messages/{id:path}/fate",  # a network's ids may have slashes in them
    summary="What became of a message",
    description="By our id or by the network's; `others` names further messages of that id.",
    responses={404: {"model": Problem}},
)
async def fate(id: Annotated[str, Path(max_length=300)], desk: At) -> FateJson:
    fates = await desk.story.fates(id)
    chosen = next((one for one in fates if one.message.id == id), fates[0])
    return fate_json(chosen, [one for one in fates if one is not chosen])


async def _still_reads(desk: Desk, chat: ChatId, authorization: str) -> None:
    await _opened(chat, desk, await desk.doorkeeper.recognise(authorization))


async def _taken_names(desk: Desk, chat: ChatId) -> set[str]:
    """How only we are shown in this chat."""
    group = await desk.groups.of_chat(chat)
    own = (group and group.assistant_name) or desk.assistant_name
    return {desk.assistant_name.casefold(), own.casefold(), OPERATOR}


async def _spelled(message: Message) -> str:
    return message_json(message).model_dump_json()


def _sequence_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        message = "Last-Event-ID is a number: the `id:` of an event of this stream"
        raise InvalidRequestError(message, field="Last-Event-ID", value=text[:80])
    return int(text)
