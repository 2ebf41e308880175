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


class ForgottenAnswer(BaseModel):
    """What was removed."""

    success: Literal[True] = True
    data: ForgottenJson


@router.post(
    "/api/forget",
    summary="Remove all that was said in a chat",
    description="Texts, turns, sessions and the group's files, for good. A running turn is"
    " stopped first. The chat stays registered, and begins anew.",
    responses={404: {"model": Problem}},
)
async def forget(body: ForgetBody, desk: At) -> ForgottenAnswer:
    removal = await desk.forgetting.forget(body.chat)
    data = ForgottenJson(chat=body.chat, at=removal.at, removed=dict(removal.counts))
    return ForgottenAnswer(data=data)
