"""One look at everything: facts are gathered, judged, and mended where that is asked for."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.doctor import boxes, database, folders, machine, preferences
from hallporter.doctor.mending import mend
from hallporter.doctor.storage import storage_of
from hallporter.domain.finding import Examination, Finding, good, problem
from hallporter.home import installation, read_holder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from hallporter.doctor.machine import Beginning
    from hallporter.doctor.preferences import Reading
    from hallporter.doctor.starts import Starts
    from hallporter.domain.finding import Setting
    from hallporter.domain.ids import Folder
    from hallporter.home import Home
    from hallporter.ports import Clock
    from hallporter.switchboard.status import LiveAgents, Report, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the settings say of the house."""

    database: Path
    address: str
    port: int
    zone: str
    is_zone_set: bool
    least_free: int | None  # bytes
    most_logs: int  # bytes
    folders: Mapping[str, str]  # that have settings of their own, and where these stand


class Doctor:
    """The use case behind `doctor` and `/api/doctor`."""

    def __init__(
        self,
        *,
        home: Home,
        terms: Terms,
        clock: Clock,
        status: Status,
        agents: LiveAgents,
        starts: Starts,
        sweep: Callable[[], Awaitable[None]],
        unwatched: Callable[[], Sequence[Folder]],
        read_settings: Callable[[], Reading],
        settings: Callable[[], Awaitable[Sequence[Setting]]],
    ) -> None:
        self._home = home
        self._terms = terms
        self._clock = clock
        self._status = status
        self._agents = agents
        self._starts = starts
        self._sweep = sweep
        self._unwatched = unwatched
        self._read_settings = read_settings
        self._settings = settings
        self._began = machine.begin(clock.now())

    async def examine(self) -> Examination:
        """Look, and change nothing."""
        return await self._told(await self._look())

    async def mend(self) -> Examination:
        """Mend what can safely be mended, and look again."""
        findings = await self._look()
        if any(finding.fix for finding in findings):
            tried = await mended(findings, sweep=self._sweep)
            findings = together(tried, await self._look())
        return await self._told(findings)

    async def _told(self, findings: Sequence[Finding]) -> Examination:
        return Examination(findings=tuple(findings), settings=tuple(await self._settings()))

    async def _look(self) -> list[Finding]:
        left = await asyncio.to_thread(self._left)
        url = await asyncio.to_thread(_url_of, self._home)
        found = await asyncio.to_thread(self._look_at_files, self._clock.now(), url)
        found += boxes.judge_sandboxes(await self._starts.probe())
        starts = await self._starts.all()
        found += boxes.judge_agents(starts)
        found += preferences.judge_folders(self._terms.folders, [one.folder for one in starts])
        # Seen twice, with time between: a box that is just being made is nobody's for a moment.
        left &= await asyncio.to_thread(self._left)
        found += boxes.judge_left(left, is_serving=bool(url))
        if url:
            found += judge_rooms(await self._status.report())
            found += machine.judge_mail(self._unwatched())
        return found

    def _look_at_files(self, now: datetime, url: str) -> list[Finding]:
        database = self._terms.database
        return [
            *look_at_folders(self._home, database),
            *look_at_sources(database, self._read_settings()),
            *look_at_machine(self._home, self._terms, now=now, began=self._began, url=url),
        ]

    def _left(self) -> frozenset[str]:
        live = {agent.id for agent in self._agents.live()}
        return boxes.left_by_others(self._home, installation(self._home), live)


def _url_of(home: Home) -> str:
    """Where the host of this home listens, empty when none does."""
    holder = read_holder(home)
    return "" if holder is None else holder.url


def look_at_folders(home: Home, path: Path) -> list[Finding]:
    return folders.judge(home.path, folders.look(home, path), uid=os.geteuid())


def look_at_sources(path: Path, reading: Reading) -> list[Finding]:
    """What a start needs before anything else."""
    return [*preferences.judge(reading), *database.judge(database.look(path))]


def look_at_machine(
    home: Home, terms: Terms, *, now: datetime, began: Beginning, url: str
) -> list[Finding]:
    """What can be seen without the store: `url` is where the host of this home listens."""
    storage = storage_of(home, terms.database)
    clock = machine.look_at_clock(
        home, now=now, began=began, zone=terms.zone, is_zone_set=terms.is_zone_set
    )
    return [
        *machine.judge_disk(storage, least=terms.least_free),
        *machine.judge_logs(storage, most=terms.most_logs),
        *machine.judge_errors(home, storage),
        *machine.judge_clock(clock),
        *machine.judge_port(machine.look_at_port(terms.address, terms.port, url)),
    ]


def judge_rooms(report: Report) -> list[Finding]:
    """The rooms of a host that runs; its sandboxes are judged by a fresh probe."""
    found = [
        problem("channels", f"the channel {name} does not work: {health.why}", "see the log")
        for name, health in report.channels.items()
        if not health.ok
    ]
    if not report.engine.ok:
        what = f"no turns are started: {report.engine.why or 'the host is ending'}"
        found.append(problem("engine", what, "restart the host"))
    return found or [good("host", "channels and engine work")]


async def mended(
    findings: Sequence[Finding], *, sweep: Callable[[], Awaitable[None]]
) -> list[Finding]:
    """The same findings, with what was done about them."""
    done = []
    for finding in findings:
        if finding.fix is None:
            done.append(finding)
            continue
        try:
            done.append(replace(finding, mended=await mend(finding.fix, sweep=sweep)))
        except OSError as error:
            do = f"{finding.do} (it was tried: {error.strerror or error})"
            done.append(replace(finding, do=do))
    return done


def together(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """What was mended, then how it stands; what is still there was not mended, whatever was
    tried."""
    still = {(finding.about, finding.what) for finding in after}
    gone = [one for one in before if one.mended and (one.about, one.what) not in still]
    tried = {(one.about, one.what): one.do for one in before if not one.mended and one.fix}
    return [
        *gone,
        *(replace(one, do=tried.get((one.about, one.what), one.do)) for one in after),
    ]
