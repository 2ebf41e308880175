"""One-time links over HTTP: how `hallporter link` gets one."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hallporter.api.desk import At
from hallporter.api.identity import bearer

router = APIRouter(tags=["links"], dependencies=[bearer])


class LinkJson(BaseModel):
    """A way in, for one browser."""

    path: str = Field(description="Below this host's address.", examples=["/enter/…"])
    expires: datetime


class LinkAnswer(BaseModel):
    """The new link."""

    success: Literal[True] = True
    data: LinkJson


@router.post(
    "/api/links",
    status_code=201,
    summary="Make a one-time link to the pages",
    description="It logs one browser in, once, within five minutes.",
)
async def create(desk: At) -> LinkAnswer:
    made = await desk.sessions.invite()
    return LinkAnswer(data=LinkJson(path=f"/enter/{made.secret}", expires=made.expires_at))
