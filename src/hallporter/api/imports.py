"""Moving in from another system, over HTTP: told line by line, because it may take its time."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Literal

import structlog
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from hallporter.api.bodies import Body
from hallporter.api.desk import At
from hallporter.api.errors import Problem
from hallporter.api.identity import bearer
from hallporter.domain.errors import HallporterError, UnavailableError
from hallporter.domain.import_report import Report
from hallporter.switchboard.importing.importing import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

router = APIRouter(tags=["house"], dependencies=[bearer])
log = structlog.get_logger(__name__)

_LINES = "application/x-ndjson"


class ImportBody(Body):
    """What to import; both folders are of the machine that the host runs on."""

    path: str = Field(max_length=4096, description="The folder of NanoClaw, as a whole path.")
    config: str | None = Field(
        None,
        max_length=4096,
        description="The folder of its allow-lists; `~/.config/nanoclaw` unless told otherwise.",
    )
    is_dry_run: bool = Field(False, description="Tell what would be done, and write nothing.")


class CountsJson(BaseModel):
    """Of one noun."""

    carried: int
    there: int = Field(description="Already; not touched.")
    skipped: int


class RemarkJson(BaseModel):
    """The same said of `count` things."""

    about: str
    sort: Literal["skipped", "mended", "note"]
    what: str
    count: int
    examples: list[str]


class ReportJson(BaseModel):
    """The last line of an import."""

    source: str
    is_dry_run: bool
    counts: dict[str, CountsJson]
    remarks: list[RemarkJson]


@router.post(
    "/api/imports/nanoclaw",
    summary="Move in from NanoClaw v1",
    description="Each line of the answer is a JSON object: `{done, total}` while it works, and at"
    " the end `{report}` or `{error, message}`. A report: `{source, is_dry_run, counts, remarks}`;"
    " `counts` has `carried`, `there` and `skipped` by noun, a remark `about`, `sort` (`skipped`,"
    " `mended` or `note`), `what`, `count` and `examples`. What was carried over before an error"
    " stays, and importing again goes on from there.",
    response_class=StreamingResponse,
    responses={
        200: {"content": {_LINES: {}}},
        400: {"model": Problem},
        409: {"model": Problem},
        503: {"model": Problem},
    },
)
async def import_nanoclaw(body: ImportBody, desk: At, request: Request) -> StreamingResponse:
    steps = desk.importing.run(body.path, body.config, is_dry_run=body.is_dry_run)
    # Before the answer begins: a refusal has a status of its own.
    first = await _first(steps, request)
    return StreamingResponse(_lines(first, steps), media_type=_LINES)


async def _first(steps: AsyncGenerator[Progress | Report], request: Request) -> Progress | Report:
    """As an answer that has begun does by itself: it ends when nobody is there to hear it."""
    async with asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(_look(steps))
        leaving = tasks.create_task(_leave(request))
        await asyncio.wait((looking, leaving), return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        looking.cancel()
    if looking.cancelled():
        raise UnavailableError("the import is ended: whoever asked for it has gone")
    found = looking.result()
    if isinstance(found, HallporterError):
        raise found
    return found


async def _look(
    steps: AsyncGenerator[Progress | Report],
) -> Progress | Report | HallporterError:
    try:
        return await anext(steps)
    except HallporterError as refusal:  # handed on as it is, not in a group
        return refusal


async def _leave(request: Request) -> None:
    await request.receive()  # the body is read: only the end can come


async def _lines(
    first: Progress | Report, steps: AsyncGenerator[Progress | Report]
) -> AsyncIterator[str]:
    async with contextlib.aclosing(steps):
        yield _line(first)
        try:
            async for step in steps:
                yield _line(step)
        except HallporterError as error:
            log.warning("import.failed", error=error.message)
            yield _spelled({"error": error.code, "message": error.message})


def _line(step: Progress | Report) -> str:
    if isinstance(step, Progress):
        return _spelled({"done": step.done, "total": step.total})
    return _spelled({"report": _report(step).model_dump()})


def _spelled(line: dict[str, object]) -> str:
    return f"{json.dumps(line, ensure_ascii=False)}\n"


def _report(report: Report) -> ReportJson:
    return ReportJson(
        source=report.source,
        is_dry_run=report.is_dry_run,
        counts={
            str(noun): CountsJson(**{str(outcome): count for outcome, count in by.items()})
            for noun, by in report.counts.items()
        },
        remarks=[
            RemarkJson(
                about=remark.about,
                sort=remark.sort.value,
                what=remark.what,
                count=remark.count,
                examples=list(remark.examples),
            )
            for remark in report.remarks
        ],
    )
