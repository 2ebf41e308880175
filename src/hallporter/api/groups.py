"""Groups over HTTP: which chats have a folder, a trigger and an agent of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from hallporter.api.bodies import Body
from hallporter.api.desk import At, Desk
from hallporter.api.errors import Problem
from hallporter.api.identity import bearer
from hallporter.domain.group import Everyone, Group, Others, SenderChange, SenderRule
from hallporter.switchboard.groups import GroupChange, NewGroup

router = APIRouter(tags=["groups"], dependencies=[bearer])

InFolder = Annotated[str, Path(description="The group's folder.", max_length=300)]
Settings = Annotated[
    dict[str, Any] | None,
    Field(
        description="What is set for this group alone, by the keys of `[agent]`: `command`,"
        " `sandbox`, … The rest comes from the settings; null takes a key back."
    ),
]


class SendersJson(Body):
    """Whose words count. In a change only what is given changes; a list replaces the list."""

    allow: list[str] | None = Field(
        None, description="Ids of senders, matched exactly; an empty list means nobody."
    )
    others: Literal["ignore", "store"] | None = Field(
        None,
        description="Words of the others: `ignore` keeps none of them; `store` keeps them, and they"
        " go along with what someone who is allowed says.",
    )


class GroupJson(BaseModel):
    """A group."""

    chat: str
    name: str
    folder: str
    trigger: str = Field(description="`@Word` at the start, or a regular expression.")
    requires_trigger: bool = Field(description="Whether only messages with the trigger wake it.")
    is_main: bool = Field(description="The one group that may look into the others.")
    assistant_name: str | None = Field(description="The assistant's own name here, if any.")
    senders: SendersJson | None = Field(description="Who may talk; null: everyone.")
    agent: str = Field(description="The kind of agent that answers.")
    agent_settings: dict[str, Any] = Field(description="What is stored for this group alone.")


class GroupAnswer(BaseModel):
    """One group."""

    success: Literal[True] = True
    data: GroupJson


class GroupsAnswer(BaseModel):
    """All groups."""

    success: Literal[True] = True
    data: list[GroupJson]
    count: int


class ChatJson(BaseModel):
    """A chat that a channel has met."""

    chat: str
    name: str
    channel: str
    is_group: bool = Field(description="Whether several people talk there.")
    last_activity: datetime | None
    is_registered: bool
    folder: str | None = Field(None, description="The group's; left out of a chat without one.")


class ChatsAnswer(BaseModel):
    """All chats, the liveliest first."""

    success: Literal[True] = True
    data: list[ChatJson]
    count: int


class GroupBody(Body):
    """A chat to register."""

    chat: str = Field(max_length=300, examples=["web:family"])
    name: str = Field(examples=["Family"])
    folder: str = Field(examples=["family"])
    trigger: str | None = None
    requires_trigger: bool = True
    is_main: bool = False
    assistant_name: str | None = Field(None, description="Without it the house's own applies.")
    senders: SendersJson | None = Field(None, description="Without it everyone may talk.")
    agent: str | None = Field(None, description="The kind; without it `[agent]` applies.")
    agent_settings: Settings = None


class ChangeBody(Body):
    """Only what is given changes."""

    name: str | None = None
    trigger: str | None = None
    requires_trigger: bool | None = None
    is_main: bool | None = None
    assistant_name: str | None = Field(None, description="Null or empty: the house's own again.")
    senders: SendersJson | None = Field(None, description="Null: everyone may talk.")
    agent: str | None = None
    agent_settings: Settings = None


@router.get("/api/groups", summary="List the groups")
async def show_all(desk: At) -> GroupsAnswer:
    groups = [_json(desk, group) for group in await desk.groups.all()]
    return GroupsAnswer(data=groups, count=len(groups))


@router.post(
    "/api/groups",
    status_code=201,
    summary="Register a chat as a group",
    description="With `is_main` the flag moves here from the group that had it.",
    responses={400: {"model": Problem}, 409: {"model": Problem}},
)
async def add(body: GroupBody, desk: At) -> GroupAnswer:
    new = NewGroup(
        chat=body.chat,
        name=body.name,
        folder=body.folder,
        trigger=body.trigger,
        requires_trigger=body.requires_trigger,
        is_main=body.is_main,
        assistant_name=body.assistant_name,
        senders=None if body.senders is None else _rule(body.senders),
        agent=_settings(body.agent, body.agent_settings),
    )
    return GroupAnswer(data=_json(desk, await desk.groups.add(new)))


@router.get(
    "/api/chats",
    summary="List the chats",
    description="Every chat that a channel has met, registered as a group or not.",
    response_model_exclude_none=True,
)
async def show_chats(desk: At) -> ChatsAnswer:
    chats = [
        ChatJson(
            chat=one.chat,
            name=one.name,
            channel=one.channel,
            is_group=one.is_group,
            last_activity=one.last_activity,
            is_registered=one.is_registered,
            folder=one.folder,
        )
        for one in await desk.groups.known_chats()
    ]
    return ChatsAnswer(data=chats, count=len(chats))


@router.get("/api/groups/{folder}", summary="One group", responses={404: {"model": Problem}})
async def show(folder: InFolder, desk: At) -> GroupAnswer:
    return GroupAnswer(data=_json(desk, await desk.groups.get(folder)))


@router.patch(
    "/api/groups/{folder}",
    summary="Change a group",
    description="Only what is given changes.",
    responses={400: {"model": Problem}, 404: {"model": Problem}, 409: {"model": Problem}},
)
async def change(folder: InFolder, body: ChangeBody, desk: At) -> GroupAnswer:
    asked = GroupChange(
        name=body.name,
        trigger=body.trigger,
        requires_trigger=body.requires_trigger,
        is_main=body.is_main,
        assistant_name=body.assistant_name,
        senders=None if body.senders is None else _rule(body.senders),
        agent=_settings(body.agent, body.agent_settings),
    )
    # Null means something here, and is not the same as silence.
    if "assistant_name" in body.model_fields_set and body.assistant_name is None:
        asked = replace(asked, assistant_name="")
    if "senders" in body.model_fields_set and body.senders is None:
        asked = replace(asked, senders=Everyone())
    return GroupAnswer(data=_json(desk, await desk.groups.change(folder, asked)))


@router.delete(
    "/api/groups/{folder}",
    status_code=204,
    summary="Remove a group",
    description="Its agent is stopped, and what waited in its chat is ignored. Its folder and"
    " history stay; with `purge` its files and all that was said in its chat go too, for good: the"
    " header `X-Removed` says how much, as JSON. A"
    " purge that fails has kept the group, and can be repeated.",
    responses={404: {"model": Problem}, 409: {"model": Problem}},
)
async def remove(
    folder: InFolder,
    desk: At,
    purge: Annotated[bool, Query(description="Remove its files and history as well.")] = False,  # noqa: FBT002
) -> Response:
    if purge:
        removal = (await desk.forgetting.purge(folder)).removal
        counts = json.dumps(dict(removal.counts))
        return Response(status_code=204, headers={"X-Removed": counts})
    await desk.dismiss(await desk.groups.remove(folder))
    return Response(status_code=204)


def _settings(kind: str | None, settings: dict[str, Any] | None) -> dict[str, Any] | None:
    if kind is None:
        return settings
    return {**(settings or {}), "kind": kind}


def _rule(senders: SendersJson) -> SenderChange:
    return SenderChange(
        allow=None if senders.allow is None else frozenset(senders.allow),
        others=None if senders.others is None else Others(senders.others),
    )


def _senders(rule: SenderRule | None) -> SendersJson | None:
    if rule is None:
        return None
    return SendersJson(allow=sorted(rule.allow), others=rule.others.value)


def _json(desk: Desk, group: Group) -> GroupJson:
    return GroupJson(
        chat=group.chat,
        name=group.name,
        folder=group.folder,
        trigger=group.trigger,
        requires_trigger=group.requires_trigger,
        is_main=group.is_main,
        assistant_name=group.assistant_name,
        senders=_senders(desk.senders_of(group)),
        agent=desk.kind_of(group),
        agent_settings=dict(group.agent),
    )
