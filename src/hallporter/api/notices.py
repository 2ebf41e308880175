"""What needs the operator, over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hallporter.api.desk import At
from hallporter.api.identity import bearer
from hallporter.domain.notice import Notice

router = APIRouter(tags=["house"], dependencies=[bearer])


class NoticeJson(BaseModel):
    """Something that needs the operator."""

    key: str = Field(description="Names the cause: the same cause has the same key.")
    text: str = Field(description="What is so, and what to do.")
    at: datetime
    told: bool = Field(description="Whether it was sent as a message, too.")


class NoticesAnswer(BaseModel):
    """All that are not over."""

    success: Literal[True] = True
    data: list[NoticeJson]
    count: int


@router.get("/api/notices", summary="What needs the operator")
async def show_all(desk: At) -> NoticesAnswer:
    found = [notice_json(notice) for notice in await desk.notices.open()]
    return NoticesAnswer(data=found, count=len(found))


def notice_json(notice: Notice) -> NoticeJson:
    return NoticeJson(
        key=notice.key,
        text=notice.text,
        at=notice.raised_at,
        told=notice.told_at is not None,
    )
