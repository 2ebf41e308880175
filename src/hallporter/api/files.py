"""The files of messages, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import FileResponse

from hallporter.api.chats import OpenChat
from hallporter.api.desk import At
from hallporter.api.errors import Problem
from hallporter.api.identity import bearer
from hallporter.downloads import download

router = APIRouter(tags=["chats"], dependencies=[bearer])


@router.get(
    "/api/chats/{chat}/files/{id}",
    summary="Fetch a file",
    description="One that went along with a message of this chat. It comes as a download, whatever"
    " its type; a file that is no longer kept is 404.",
    response_class=FileResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}},
        404: {"model": Problem},
    },
)
async def fetch(chat: OpenChat, id: Annotated[str, Path(max_length=300)], desk: At) -> FileResponse:
    return download(*await desk.enclosures.find(chat, id))
