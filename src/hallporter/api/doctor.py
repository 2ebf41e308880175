"""What is wrong and how to mend it, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hallporter.api.desk import At
from hallporter.api.identity import bearer

if TYPE_CHECKING:
    from hallporter.domain.finding import Examination, Finding

router = APIRouter(tags=["house"], dependencies=[bearer])


class FindingJson(BaseModel):
    """One thing that was looked at."""

    about: str
    level: Literal["ok", "warning", "problem"]
    what: str
    do: str = Field(description="What to do about it.")
    can_fix: bool = Field(description="Whether `POST /api/doctor` does it.")
    mended: str = Field(description="What was done about it, empty when nothing was.")


class SettingJson(BaseModel):
    """One setting as it acts now."""

    key: str
    value: str = Field(description="Secrets are not shown.")
    origin: str
    acts: str = Field(description="From when a change of it counts.")
    is_default: bool


class ExaminationJson(BaseModel):
    """What was found."""

    is_well: bool = Field(description="No problem is left.")
    findings: list[FindingJson]
    settings: list[SettingJson]


class ExaminationAnswer(BaseModel):
    """What was found."""

    success: Literal[True] = True
    data: ExaminationJson


@router.get(
    "/api/doctor",
    summary="What is wrong, and what to do",
    description="Runs a probe in each sandbox and makes each group's box: it takes a moment.",
)
async def look(desk: At) -> ExaminationAnswer:
    return _answer(await desk.examine())


@router.post(
    "/api/doctor",
    summary="The same, and mend what can safely be mended",
    description="Permissions and missing folders; boxes that were left only while no host runs.",
)
async def mend(desk: At) -> ExaminationAnswer:
    return _answer(await desk.mend())


def finding_json(finding: Finding) -> FindingJson:
    return FindingJson(
        about=finding.about,
        level=finding.level.value,
        what=finding.what,
        do=finding.do,
        can_fix=finding.fix is not None,
        mended=finding.mended,
    )


def _answer(examination: Examination) -> ExaminationAnswer:
    return ExaminationAnswer(
        data=ExaminationJson(
            is_well=not any(finding.is_wrong for finding in examination.findings),
            findings=[finding_json(finding) for finding in examination.findings],
            settings=[
                SettingJson(
                    key=setting.key,
                    value=setting.value,
                    origin=setting.origin,
                    acts=setting.acts,
                    is_default=setting.is_default,
                )
                for setting in examination.settings
            ],
        )
    )
