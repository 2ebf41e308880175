"""Tasks over HTTP: standing prompts, and what became of each of their ticks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import AwareDatetime, BaseModel, Field

from hallporter.api.bodies import Body
from hallporter.api.desk import At
from hallporter.api.errors import Problem
from hallporter.api.identity import bearer
from hallporter.domain.schedule import remark
from hallporter.domain.task import Task, Tick
from hallporter.domain.token import OPERATOR
from hallporter.switchboard.tasks import NewTask, TaskChange

router = APIRouter(tags=["tasks"], dependencies=[bearer])

ById = Annotated[str, Path(description="The task's id.", max_length=300)]

_MILLISECOND = timedelta(milliseconds=1)


class TaskJson(BaseModel):
    """A standing prompt."""

    id: str
    group: str = Field(description="The folder of its group.")
    chat: str
    prompt: str
    schedule_type: str = Field(description="`cron`, `interval` or `once`.")
    schedule_value: str = Field(description="As it was asked for.")
    context_mode: str = Field(description="`group`: in the group's session; `isolated`: in none.")
    timezone: str
    misfire: str = Field(description="What is done for missed ticks: `once`, `skip` or `all`.")
    status: str = Field(description="`active`, `paused` or `completed`.")
    next_run: datetime | None
    last_run: datetime | None


class TaskAnswer(BaseModel):
    """One task."""

    success: Literal[True] = True
    data: TaskJson
    note: str | None = Field(
        None,
        description="What the asker should know of the time, if anything.",
        exclude_if=lambda note: note is None,
    )


class TasksAnswer(BaseModel):
    """Tasks, the oldest first."""

    success: Literal[True] = True
    data: list[TaskJson]
    count: int


class TickJson(BaseModel):
    """One due time, and what became of it."""

    due: datetime
    state: str = Field(description="`due`, `running`, `ran`, `late`, `skipped` or `failed`.")
    why: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    late_ms: int | None = Field(None, description="From its due time to its start.")
    attempts: int


class TickAnswer(BaseModel):
    """One tick."""

    success: Literal[True] = True
    data: TickJson


class TicksAnswer(BaseModel):
    """Ticks, the newest first."""

    success: Literal[True] = True
    data: list[TickJson]
    count: int


class TaskBody(Body):
    """A task to make."""

    group: str = Field(description="The folder of the group.", examples=["family"])
    prompt: str = Field(description="What the agent is to do.", examples=["Say good morning."])
    schedule_type: str = Field(examples=["cron"])
    schedule_value: str = Field(
        description="Five fields of cron or a word such as `@daily`; milliseconds; or a local time"
        " without offset.",
        examples=["0 9 * * *"],
    )
    context_mode: str | None = Field(None, description="`group` unless told otherwise.")
    timezone: str | None = Field(None, description="The host's own unless told otherwise.")
    misfire: str | None = Field(None, description="`once` unless told otherwise.")
    id: str | None = Field(None, description="Chosen by you; else one is made.")


class ChangeBody(Body):
    """Only what is given changes."""

    prompt: str | None = None
    schedule_type: str | None = None
    schedule_value: str | None = None
    context_mode: str | None = None
    timezone: str | None = None
    misfire: str | None = None


@router.get("/api/tasks", summary="List the tasks", responses={404: {"model": Problem}})
async def show_all(
    desk: At,
    group: Annotated[str | None, Query(description="Of this folder alone.", max_length=300)] = None,
) -> TasksAnswer:
    tasks = [_json(task) for task in await desk.tasks.all(group)]
    return TasksAnswer(data=tasks, count=len(tasks))


@router.post(
    "/api/tasks",
    status_code=201,
    summary="Make a task",
    description="A single time that the clocks skip moves forward with them; `note` says so.",
    responses={400: {"model": Problem}, 404: {"model": Problem}, 409: {"model": Problem}},
)
async def add(body: TaskBody, desk: At) -> TaskAnswer:
    new = NewTask(
        folder=body.group,
        prompt=body.prompt,
        schedule_type=body.schedule_type,
        schedule_value=body.schedule_value,
        context_mode=body.context_mode,
        timezone=body.timezone,
        misfire=body.misfire,
        id=body.id,
        created_by=OPERATOR,
    )
    return _answer(await desk.tasks.add(new))


@router.get("/api/tasks/{id}", summary="One task", responses={404: {"model": Problem}})
async def show(id: ById, desk: At) -> TaskAnswer:
    return _answer(await desk.tasks.get(id))


@router.patch(
    "/api/tasks/{id}",
    summary="Change a task",
    description="Only what is given changes. A new schedule counts from now, and makes a completed"
    " task active again.",
    responses={400: {"model": Problem}, 404: {"model": Problem}, 409: {"model": Problem}},
)
async def change(id: ById, body: ChangeBody, desk: At) -> TaskAnswer:
    asked = TaskChange(
        prompt=body.prompt,
        schedule_type=body.schedule_type,
        schedule_value=body.schedule_value,
        context_mode=body.context_mode,
        timezone=body.timezone,
        misfire=body.misfire,
    )
    return _answer(await desk.tasks.update(id, asked))


@router.delete(
    "/api/tasks/{id}",
    status_code=204,
    summary="Cancel a task",
    description="It is gone with its ticks; a run that has begun ends by itself.",
    responses={404: {"model": Problem}},
)
async def cancel(id: ById, desk: At) -> Response:
    await desk.tasks.act(desk.tasks.cancel, id)
    return Response(status_code=204)


@router.post(
    "/api/tasks/{id}/pause",
    summary="Pause a task",
    description="No more ticks; what waits is skipped.",
    responses={404: {"model": Problem}, 409: {"model": Problem}},
)
async def pause(id: ById, desk: At) -> TaskAnswer:
    return _answer(await desk.tasks.act(desk.tasks.pause, id))


@router.post(
    "/api/tasks/{id}/resume",
    summary="Resume a task",
    description="From now on; what was missed while it was paused is not made up for.",
    responses={404: {"model": Problem}, 409: {"model": Problem}},
)
async def resume(id: ById, desk: At) -> TaskAnswer:
    return _answer(await desk.tasks.act(desk.tasks.resume, id))


@router.post(
    "/api/tasks/{id}/run",
    summary="Run a task now",
    description="One tick more, whatever the status; the schedule stays. The answer is the tick.",
    response_model_exclude_none=True,
    responses={404: {"model": Problem}, 409: {"model": Problem}},
)
async def run(id: ById, desk: At) -> TickAnswer:
    return TickAnswer(data=_tick(await desk.tasks.act(desk.tasks.run_now, id)))


@router.get(
    "/api/tasks/{id}/ticks",
    summary="What became of each due time",
    description="The newest first.",
    response_model_exclude_none=True,
    responses={400: {"model": Problem}, 404: {"model": Problem}},
)
async def ticks(
    id: ById,
    desk: At,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[
        AwareDatetime | None,
        Query(description="Only what was due earlier: the last `due` of an answer goes on."),
    ] = None,
) -> TicksAnswer:
    found = [_tick(tick) for tick in await desk.tasks.ticks(id, limit, before)]
    return TicksAnswer(data=found, count=len(found))


def _answer(task: Task) -> TaskAnswer:
    return TaskAnswer(data=_json(task), note=remark(task.schedule) or None)


def _json(task: Task) -> TaskJson:
    return TaskJson(
        id=task.id,
        group=task.folder,
        chat=task.chat,
        prompt=task.prompt,
        schedule_type=task.schedule.type,
        schedule_value=task.schedule.value,
        context_mode=task.context_mode,
        timezone=task.schedule.timezone,
        misfire=task.misfire,
        status=task.status,
        next_run=task.next_at,
        last_run=task.last_at,
    )


def _tick(tick: Tick) -> TickJson:
    late = tick.lateness
    return TickJson(
        due=tick.due,
        state=tick.state,
        why=tick.why or None,
        started=tick.started_at,
        ended=tick.ended_at,
        late_ms=None if late is None else late // _MILLISECOND,
        attempts=tick.attempts,
    )
