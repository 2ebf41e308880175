"""How the house stands, over HTTP: for operators, for watchdogs and for Prometheus."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict
from datetime import datetime
from typing import Literal

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.requests import Request

from hallporter.api.desk import At
from hallporter.api.errors import NOTHING_HERE, STATUS
from hallporter.api.identity import bearer
from hallporter.api.notices import NoticeJson, notice_json
from hallporter.domain.errors import NotFoundError, UnavailableError
from hallporter.switchboard.status import Report, Usage

open_router = APIRouter(tags=["health"])
router = APIRouter(tags=["house"], dependencies=[bearer])


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Version(BaseModel):
    """The process answers, and which version it is."""

    status: Literal["ok"] = "ok"
    version: str


class Ready(BaseModel):
    """Messages are taken and answered."""

    status: Literal["ready"] = "ready"


class NotReady(BaseModel):
    """Something that is needed does not work."""

    success: Literal[False] = False
    error: Literal["NOT_READY"] = "NOT_READY"
    message: str
    reasons: list[str]


class HealthJson(BaseModel):
    """Whether something works; `why` says what is wrong, or what it waits for."""

    ok: bool
    why: str


class ChannelJson(HealthJson):
    """A chat network."""

    name: str


class ChannelsAnswer(BaseModel):
    """All channels."""

    success: Literal[True] = True
    data: list[ChannelJson]
    count: int


class PoolJson(BaseModel):
    """Slots for turns."""

    in_use: int
    size: int


class EngineJson(HealthJson):
    """The line of chats that wait for their turn."""

    waiting: int
    running: int
    oldest_wait: float | None = Field(description="Seconds.")
    pools: dict[str, PoolJson]


class AgentJson(BaseModel):
    """A running agent, busy or warm."""

    id: str
    folder: str
    state: str
    since: datetime
    pid: int
    age: float = Field(description="Seconds since it was started.")
    memory: int = Field(description="Bytes of all its processes; shared ones count several times.")


class SandboxJson(BaseModel):
    """A kind of sandbox on this machine."""

    name: str
    is_chosen: bool
    works: bool
    why: str
    unenforced: list[str] = Field(description="Limits that cannot be kept here.")
    warnings: list[str]


class FailureJson(BaseModel):
    """A turn that failed in the last day."""

    turn: str
    chat: str
    at: datetime
    attempt: int
    why: str


class TroubleJson(BaseModel):
    """Failures of the last day that have one reason."""

    why: str
    count: int
    last: datetime
    chats: list[str]


class StorageJson(BaseModel):
    """What the home takes and what is left, in bytes."""

    database: int
    groups: int
    logs: int
    errors: int = Field(description="Files in `data/ipc/errors`: requests nobody could read.")
    free: int
    total: int


class StatusJson(BaseModel):
    """The whole house."""

    version: str
    is_ready: bool
    problems: list[str]
    groups: int
    tasks: dict[str, int] = Field(description="Standing prompts by status.")
    next_tick: datetime | None = Field(description="When the next one of them is due.")
    channels: list[ChannelJson]
    engine: EngineJson
    agents: list[AgentJson]
    sandboxes: list[SandboxJson]
    messages: dict[str, int] = Field(description="People's messages by the state of their fate.")
    outbox: dict[str, int] = Field(description="What is to be sent, by state.")
    failures: list[FailureJson] = Field(description="Newest first.")
    notices: list[NoticeJson] = Field(description="What needs the operator, oldest first.")
    troubles: list[TroubleJson] = Field(description="The same by reason, the most frequent first.")
    store: HealthJson
    storage: StorageJson


class StatusAnswer(BaseModel):
    """The whole house."""

    success: Literal[True] = True
    data: StatusJson


@open_router.get("/healthz", summary="Alive?")
async def healthz() -> Alive:
    return Alive()


@open_router.get("/health", summary="Alive, and which version?")
async def health(desk: At) -> Version:
    return Version(version=desk.version)


@open_router.get(
    "/readyz",
    summary="Ready?",
    description="Store, engine, sandbox and channels work; 503 with the reasons otherwise.",
    response_model=Ready,
    responses={503: {"model": NotReady}},
)
async def readyz(desk: At) -> Ready | JSONResponse:
    try:
        reasons = list((await desk.status.report()).problems)
    except UnavailableError as error:
        reasons = [f"store: {error.message}"]
    if not reasons:
        return Ready()
    body = NotReady(message=f"not ready: {'; '.join(reasons)}", reasons=reasons)
    return JSONResponse(body.model_dump(), status_code=STATUS["NOT_READY"])


def _only_from_here(request: Request) -> None:
    client = request.client
    forwarded = {"forwarded", "x-forwarded-for"}.intersection(request.headers)
    if client is None or forwarded or not _is_loopback(client.host):
        raise NotFoundError(NOTHING_HERE)


@open_router.get(
    "/metrics",
    summary="Figures for Prometheus",
    description="For callers on this machine only.",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
    dependencies=[Depends(_only_from_here)],
)
async def metrics(desk: At) -> Response:
    body, media_type = desk.metrics.exposition(await desk.status.report())
    return Response(body, media_type=media_type)


@router.get("/api/status", summary="What runs, what waits, what failed")
async def status(desk: At) -> StatusAnswer:
    report, usage = await desk.status.report(), await desk.status.usage()
    return StatusAnswer(data=_json(report, usage, version=desk.version, now=desk.clock.now()))


@router.get("/api/channels", summary="List the channels")
async def channels(desk: At) -> ChannelsAnswer:
    found = _channels(await desk.status.report())
    return ChannelsAnswer(data=found, count=len(found))


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def _channels(report: Report) -> list[ChannelJson]:
    return [
        ChannelJson(name=name, ok=health.ok, why=health.why)
        for name, health in report.channels.items()
    ]


def _json(report: Report, usage: Usage, *, version: str, now: datetime) -> StatusJson:
    engine = report.engine
    oldest = engine.oldest_wait
    problems = list(report.problems)
    return StatusJson(
        version=version,
        is_ready=not problems,
        problems=problems,
        groups=report.groups,
        tasks=dict(report.tasks),
        next_tick=report.next_tick,
        channels=_channels(report),
        engine=EngineJson(
            ok=engine.ok,
            why=engine.why,
            waiting=engine.waiting,
            running=engine.running,
            oldest_wait=None if oldest is None else oldest.total_seconds(),
            pools={
                pool: PoolJson(in_use=in_use, size=size)
                for pool, (in_use, size) in engine.pools.items()
            },
        ),
        agents=[
            AgentJson(
                id=agent.id,
                folder=agent.folder,
                state=agent.state,
                since=agent.since,
                pid=agent.pid,
                age=(now - agent.since).total_seconds(),
                memory=usage.memory.get(agent.id, 0),
            )
            for agent in report.agents
        ],
        sandboxes=[
            SandboxJson(
                name=box.name,
                is_chosen=box.is_chosen,
                works=box.fitness.works,
                why=box.why or box.fitness.problem,
                unenforced=list(box.fitness.unenforced),
                warnings=list(box.fitness.warnings),
            )
            for box in report.sandboxes
        ],
        messages=dict(report.messages),
        outbox=dict(report.outbox),
        failures=[
            FailureJson(
                turn=turn.id,
                chat=turn.chat,
                at=turn.ended_at or turn.started_at,
                attempt=turn.attempt,
                why=turn.why,
            )
            for turn in report.failures
        ],
        notices=[notice_json(notice) for notice in report.notices],
        troubles=[
            TroubleJson(
                why=trouble.why, count=trouble.count, last=trouble.last, chats=list(trouble.chats)
            )
            for trouble in report.troubles
        ],
        store=HealthJson(ok=report.store.ok, why=report.store.why),
        storage=StorageJson(**asdict(usage.storage)),
    )
