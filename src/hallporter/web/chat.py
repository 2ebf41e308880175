"""The chat page: read, say, follow, and see what became of a message."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from hallporter.domain.errors import InvalidRequestError, NotFoundError
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Inbound, State
from hallporter.domain.token import OPERATOR
from hallporter.downloads import download
from hallporter.streams import EventStream
from hallporter.web.guard import form_of, wants_page
from hallporter.web.templates import fill
from hallporter.web.typesetter import Typesetter
from hallporter.web.welcome import opening, tries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from hallporter.domain.group import Group
    from hallporter.domain.message import Message
    from hallporter.web.guard import Visitor
    from hallporter.web.lobby import Lobby

_AT_ONCE = 50  # messages of a first look, and of each look further back
_MAX_DIGITS = 18  # of a sequence number: what a database's integer holds
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

# What a person should see without asking; the other states are the ordinary way of things.
_REMARKS = {
    State.WAITING: "waits for a trigger",
    State.IGNORED: "ignored",
    State.STOPPED: "stopped",
    State.OMITTED: "left out",
    State.FAILED: "failed",
    State.GAVE_UP: "given up",
}


@dataclass(frozen=True, slots=True)
class ChatPage:
    """The page at `/` and what its script asks for."""

    lobby: Lobby
    typesetter: Typesetter

    async def show(self, request: Request, visitor: Visitor) -> Response:
        groups = await self._web_groups()
        group = _chosen(groups, request.query_params.get("chat"))
        messages = await self.lobby.story.before(group.chat, None, _AT_ONCE + 1)
        page = await asyncio.to_thread(
            fill,
            "chat.html",
            groups=groups,
            group=group,
            answerer=self.lobby.answerer_of(group),
            assistant=group.assistant_name or self.lobby.assistant_name,
            opening=opening(group, self.lobby.assistant_name),
            tries=tries(group, self.lobby.assistant_name),
            notices=await self.lobby.notices(),
            messages=messages[-_AT_ONCE:],
            articles=await self._set(messages[-_AT_ONCE:]),
            has_earlier=len(messages) > _AT_ONCE,
            last=messages[-1].seq if messages else 0,
            csrf=visitor.csrf,
            version=self.lobby.version,
        )
        return HTMLResponse(page)

    async def earlier(self, request: Request, _visitor: Visitor) -> Response:
        """Those before a sequence number; the header says whether there are still more."""
        chat = await self._open_chat(request)
        before = _sequence_number(request.query_params.get("before", ""), "before")
        messages = await self.lobby.story.before(chat, before, _AT_ONCE + 1)
        body = "".join(await self._set(messages[-_AT_ONCE:]))
        more = "yes" if len(messages) > _AT_ONCE else "no"
        return HTMLResponse(body, headers={"X-Earlier": more})

    async def say(self, request: Request, _visitor: Visitor) -> Response:
        chat = await self._open_chat(request)
        form = await form_of(request)
        text = form.get("text", "")
        own = form.get("id") or self.lobby.new_id("m")
        if not text.strip():
            raise InvalidRequestError("say something: the text is empty", field="text")
        if not _ID.fullmatch(own):
            message = "an id has letters, digits, '.', '_', ':' and '-', up to 128"
            raise InvalidRequestError(message, field="id")
        accepted = await self.lobby.intake.accept(
            Inbound(
                chat=chat,
                ext_id=own,
                sender=OPERATOR,
                sender_name=OPERATOR,
                text=text,
                sent_at=self.lobby.clock.now(),
                preferred_id=MessageId(own),
            )
        )
        if wants_page(request):  # a browser without script has left the page for this answer
            place = f"/?chat={quote(chat, safe='')}#m-{accepted.message.id}"
            return RedirectResponse(place, status_code=303)
        return JSONResponse({"id": accepted.message.id}, status_code=202)

    async def follow(self, request: Request, visitor: Visitor) -> Response:
        chat = await self._open_chat(request)
        # A browser that comes again sends the header beside the `after` of the first time.
        place = request.headers.get("last-event-id") or request.query_params.get("after")
        return EventStream(
            chat=chat,
            after=None if place is None else _sequence_number(place, "after"),
            story=self.lobby.story,
            feed=self.lobby.feed,
            clock=self.lobby.clock,
            recognise=partial(self._still_reads, chat, visitor.secret),
            spell=self.typesetter.event,
        )

    async def fate(self, request: Request, _visitor: Visitor) -> Response:
        id_ = request.path_params["id"]
        fates = await self.lobby.story.fates(id_)
        fate = next((one for one in fates if one.message.id == id_), fates[0])
        return HTMLResponse(fill("fate.html", fate=fate))

    async def file(self, request: Request, _visitor: Visitor) -> Response:
        chat = await self._open_chat(request)
        return download(*await self.lobby.enclosures.find(chat, request.path_params["id"]))

    async def notices(self, _request: Request, _visitor: Visitor) -> Response:
        return HTMLResponse(fill("notices.html", notices=await self.lobby.notices()))

    async def _set(self, messages: Sequence[Message]) -> Sequence[Markup]:
        # One by one: a page full of long texts takes one thread, not all of them.
        return [Markup(await self.typesetter.html(one)) for one in messages]  # noqa: S704  ours

    async def _web_groups(self) -> Sequence[Group]:
        groups = await self.lobby.groups.all()
        return [group for group in groups if self.lobby.web.owns(group.chat)]

    async def _open_chat(self, request: Request) -> ChatId:
        chat = ChatId(request.path_params["chat"])
        await self._check_open(chat)
        return chat

    async def _still_reads(self, chat: ChatId, secret: str) -> None:
        await self.lobby.sessions.find(secret)
        await self._check_open(chat)

    async def _check_open(self, chat: ChatId) -> None:
        if not self.lobby.web.owns(chat) or not await self.lobby.story.is_open(chat):
            raise NotFoundError(f"no web chat {chat[:80]!r} is registered here", chat=chat)


def _chosen(groups: Sequence[Group], asked: str | None) -> Group:
    if not groups:
        message = "no web chat is registered here: add one with `hallporter groups add web:NAME …`"
        raise NotFoundError(message)
    if asked is None:
        return groups[0]  # main is the first of them, if it is a web chat
    group = next((group for group in groups if group.chat == asked), None)
    if group is None:
        raise NotFoundError(f"no web chat {asked[:80]!r} is registered here")
    return group


def article(message: Message) -> str:
    """One message, as it stands in the log."""
    return fill("message.html", message=message, remarks=_REMARKS, operator=OPERATOR)


def _sequence_number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise InvalidRequestError(f"{field} is a message's number", field=field, value=text[:80])
    return int(text)
