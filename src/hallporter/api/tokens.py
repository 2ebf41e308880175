"""Tokens over HTTP: made, listed, revoked."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field

from hallporter.api.bodies import Body
from hallporter.api.desk import At
from hallporter.api.errors import Problem
from hallporter.api.identity import bearer
from hallporter.domain.token import parse_lifetime

router = APIRouter(tags=["tokens"], dependencies=[bearer])


class TokenJson(BaseModel):
    """A token, without its secret."""

    id: str
    role: str
    subject: str = Field(description="Who uses it.")
    chat: str | None = Field(description="The one chat it opens; an operator's opens all.")
    created: datetime
    expires: datetime | None
    used: datetime | None = Field(description="The last use, to the minute.")
    revoked: datetime | None


class CreatedJson(BaseModel):
    """A token, and the only sight of its secret."""

    id: str
    token: str = Field(description="The secret: it is stored as a hash and never shown again.")
    role: str
    subject: str
    chat: str | None
    expires: datetime | None


class TokensAnswer(BaseModel):
    """All tokens, also revoked ones."""

    success: Literal[True] = True
    data: list[TokenJson]
    count: int


class CreatedAnswer(BaseModel):
    """The new token."""

    success: Literal[True] = True
    data: CreatedJson


class TokenBody(Body):
    """A token to make."""

    role: str = Field(examples=["consumer_app"])
    subject: str = Field(description="Who will use it.", examples=["alice"])
    chat: str | None = Field(None, max_length=300, description="The one chat it opens.")
    expires: str | None = Field(None, description="After how long.", examples=["30d"])


@router.get("/api/tokens", summary="List the tokens")
async def show_all(desk: At) -> TokensAnswer:
    tokens = [
        TokenJson(
            id=token.id,
            role=token.role,
            subject=token.subject,
            chat=token.chat,
            created=token.created_at,
            expires=token.expires_at,
            used=token.used_at,
            revoked=token.revoked_at,
        )
        for token in await desk.tokens.all()
    ]
    return TokensAnswer(data=tokens, count=len(tokens))


@router.post(
    "/api/tokens",
    status_code=201,
    summary="Make a token",
    description="The secret is in this answer and nowhere else.",
    responses={400: {"model": Problem}},
)
async def create(body: TokenBody, desk: At) -> CreatedAnswer:
    made = await desk.tokens.create(
        role=body.role,
        subject=body.subject,
        chat=body.chat,
        expires_in=None if body.expires is None else parse_lifetime(body.expires),
    )
    token = made.token
    return CreatedAnswer(
        data=CreatedJson(
            id=token.id,
            token=made.secret,
            role=token.role,
            subject=token.subject,
            chat=token.chat,
            expires=token.expires_at,
        )
    )


@router.delete(
    "/api/tokens/{id}",
    status_code=204,
    summary="Revoke a token",
    description="The next request with it is refused; revoking it again changes nothing.",
    responses={404: {"model": Problem}},
)
async def revoke(id: Annotated[str, Path(max_length=300)], desk: At) -> Response:
    await desk.tokens.revoke(id)
    return Response(status_code=204)
