"""Forgetting a chat, over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hallporter.api.bodies import Body
from hallporter.api.desk import At
from hallporter.api.errors import Problem
from hallporter.api.identity import bearer

router = APIRouter(tags=["chats"], dependencies=[bearer])


class ForgetBody(Body):
    """Which chat."""

    chat: str = Field(max_length=300, examples=["web:family"])


class ForgottenJson(BaseModel):
    """How much is gone."""

    chat: str
    at: datetime
    removed: dict[str, int] = Field(description="By kind: messages, turns, files, …")
    is_registered: bool = Field(description="Whether a group goes on in the chat.")
    is_scrubbed: bool = Field(
        description="Whether nothing of it is left in the database's files. Else another program"
        " reads the database, or the disk is full; the host tries again every hour."
    )


class ForgottenAnswer(BaseModel):
    """What was removed."""

    success: Literal[True] = True
    data: ForgottenJson


@router.post(
    "/api/forget",
    summary="Remove all that was said in a chat",
    description="Texts, turns, sessions and the group's files, for good. A running turn is"
    " stopped first. A group that is registered stays, and begins anew; the files of one that was"
    " removed go, too. When a file cannot be removed, repeat it.",
    responses={404: {"model": Problem}, 409: {"model": Problem}},
)
async def forget(body: ForgetBody, desk: At) -> ForgottenAnswer:
    forgotten = await desk.forgetting.forget(body.chat)
    return ForgottenAnswer(
        data=ForgottenJson(
            chat=body.chat,
            at=forgotten.removal.at,
            removed=dict(forgotten.removal.counts),
            is_registered=forgotten.group is not None,
            is_scrubbed=forgotten.is_scrubbed,
        )
    )
