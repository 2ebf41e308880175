"""The machine under the house: its disk, its clock, its ports."""

from __future__ import annotations

import errno
import os
import socket
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.finding import Finding, good, problem, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hallporter.home import Home
    from hallporter.switchboard.status import Storage

_MIB = 1 << 20
_SHOWN = 5  # names in a finding
_HARDLY_ANY = 64 * _MIB  # free: the next writes may fail
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # this was written later
_TOLERANCE = timedelta(seconds=5)
_JUMP = timedelta(seconds=60)


# --- disk ---------------------------------------------------------------------------------------


def judge_disk(storage: Storage, *, least: int | None) -> list[Finding]:
    """`least` is what the settings want to be left, None when they do not care."""
    free = f"{storage.free // _MIB} MiB are free on the home's disk"
    do = "make room there, or move the home to a larger disk"
    if storage.free < _MIB:
        return [problem("disk", "the home's disk is full: messages cannot be stored", do)]
    if storage.free < _HARDLY_ANY:
        return [problem("disk", f"only {free}: messages may soon be refused", do)]
    if least is not None and storage.free < least:
        return [
            warn("disk", f"only {free}, less than host.min_free_disk ({least // _MIB} MiB)", do)
        ]
    return [good("disk", free)]


def judge_logs(storage: Storage, *, most: int) -> list[Finding]:
    """`most` is what the settings allow the host's log files to take."""
    if storage.logs <= most:
        return [good("logs", f"the log files take {storage.logs // _MIB} MiB")]
    what = f"logs/ takes {storage.logs // _MIB} MiB; the settings allow {most // _MIB} MiB"
    return [warn("logs", what, "delete what is not the host's own, or raise logs.max_size or keep")]


def judge_errors(home: Home, storage: Storage) -> list[Finding]:
    if not storage.errors:
        return [good("errors", "no request was put aside")]
    count = "1 file" if storage.errors == 1 else f"{storage.errors} files"
    what = f"{count} in {home.errors_dir}: requests that could not be understood"
    return [warn("errors", what, "look at them, mend the agent that wrote them, delete them")]


def judge_mail(unwatched: Sequence[str]) -> list[Finding]:
    """`unwatched`: groups whose requests the kernel does not tell us of."""
    if not unwatched:
        return [good("mail", "agents' requests are taken the moment they come")]
    some = ", ".join(sorted(unwatched)[:_SHOWN])
    more = f" and {len(unwatched) - _SHOWN} more" if len(unwatched) > _SHOWN else ""
    what = (
        f"the requests of {some}{more} are looked for once a minute only: the kernel watches no"
        " more folders"
    )
    do = "raise fs.inotify.max_user_watches and max_user_instances by sysctl, and restart the host"
    return [warn("mail", what, do)]


# --- clock --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockFacts:
    """`file_time` is what the home's file system stamps, None when it takes no file; `jumped` is
    by how much the clock was set since the host began."""

    now: datetime
    file_time: datetime | None
    jumped: timedelta
    zone: str
    is_zone_set: bool
    local_offset: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """When the host began, by the clock that can be set and by the one that cannot."""

    at: datetime
    since_boot: float


def begin(now: datetime) -> Beginning:
    return Beginning(at=now, since_boot=time.clock_gettime(time.CLOCK_BOOTTIME))


def look_at_clock(
    home: Home, *, now: datetime, began: Beginning, zone: str, is_zone_set: bool
) -> ClockFacts:
    passed = time.clock_gettime(time.CLOCK_BOOTTIME) - began.since_boot
    return ClockFacts(
        now=now,
        file_time=_file_time(home.run_dir),
        jumped=now - began.at - timedelta(seconds=passed),
        zone=zone,
        is_zone_set=is_zone_set,
        local_offset=timedelta(seconds=time.localtime().tm_gmtoff),
    )


def judge_clock(facts: ClockFacts) -> list[Finding]:
    found = []
    off = timedelta(0) if facts.file_time is None else facts.file_time - facts.now
    mend = "set it: timedatectl set-ntp true"
    if facts.now < _EPOCH:
        found.append(problem("clock", f"the clock says {facts.now:%Y-%m-%d}: it is wrong", mend))
    if abs(off) > _TOLERANCE:
        what = f"the home's file system is {off.total_seconds():+.0f} s from the clock"
        do = "set the clock of this machine, or of the one that serves the files"
        found.append(warn("clock", what, do))
    if abs(facts.jumped) > _JUMP:
        what = f"the clock was set by {facts.jumped.total_seconds():+.0f} s since the host began"
        found.append(warn("clock", what, f"{mend}; then restart the host"))
    if not facts.is_zone_set and facts.zone == "UTC" and facts.local_offset:
        what = "the machine's time zone has no name that we know: agents are told UTC"
        found.append(warn("clock", what, 'set [host] timezone = "Europe/Paris" or the like'))
    return found or [good("clock", f"{facts.now:%Y-%m-%d %H:%M:%S} UTC, zone {facts.zone}")]


def _file_time(folder: Path) -> datetime | None:
    try:
        number, name = tempfile.mkstemp(dir=folder, prefix="clock-")
    except OSError:  # no room, no folder, no right: told by those who look at these
        return None
    try:
        return datetime.fromtimestamp(os.fstat(number).st_mtime, UTC)
    finally:
        os.close(number)
        Path(name).unlink()


# --- port ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """`url` is where our own host listens, empty when none runs; `trouble` why nobody can."""

    address: str
    number: int
    url: str
    trouble: str = ""
    is_taken: bool = False


def look_at_port(address: str, number: int, url: str) -> Port:
    """Try it, unless our own host has it."""
    facts = Port(address=address, number=number, url=url)
    if url:
        return facts
    try:
        family = socket.getaddrinfo(address, number, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((address, number))
    except OSError as error:
        return Port(
            address=address,
            number=number,
            url=url,
            trouble=error.strerror or str(error),
            is_taken=error.errno == errno.EADDRINUSE,
        )
    return facts


def judge_port(port: Port) -> list[Finding]:
    where = f"port {port.number} on {port.address}"
    if port.url:
        return [good("port", f"this host listens at {port.url}")]
    if port.is_taken:
        do = "end that one, or choose another port: [host] port, up --port, make run PORT="
        return [problem("port", f"{where} is taken by another program", do)]
    if port.trouble:
        do = "choose another: [host] address and port, or up --host and --port"
        return [problem("port", f"{where} cannot be used: {port.trouble}", do)]
    return [good("port", f"{where} is free")]
