"""The life of a host: the lock, the doors, the signals, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog
import uvicorn

from hallporter import logs
from hallporter.api.patience import Patience
from hallporter.clock import SystemClock
from hallporter.doctor.examining import (
    look_at_folders,
    look_at_machine,
    look_at_sources,
    mended,
    together,
)
from hallporter.doctor.machine import begin
from hallporter.domain.errors import AgentRefusedError, ConflictError, InvalidSettingsError
from hallporter.domain.finding import MakeFolder
from hallporter.home import Home, hold, open_home, reachable, read_holder
from hallporter.settings import environment, load
from hallporter.wiring import build, read_settings, terms_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp

    from hallporter.domain.finding import Finding
    from hallporter.home import Hold, Holder
    from hallporter.ports import Channel
    from hallporter.settings import Loaded
    from hallporter.wiring import Rooms

log = structlog.get_logger(__name__)

# Together under the ten seconds that an end may take.
_DRAIN = timedelta(seconds=4)  # for running turns
_LAST_ANSWERS = 1  # seconds for open HTTP requests, and for each network to let go
_CONNECT = 10.0  # seconds for a network at the start


async def serve(path: Path, address: str | None, port: int | None) -> int:
    """Run the host until a signal ends it; the exit code. Raises a refusal before anything runs."""
    home = open_home(path)
    loaded = load(home.path, environment())
    logs.configure(loaded.settings.host.log_level, _log_file(home, loaded))
    for warning in (*home.warnings, *loaded.warnings):
        log.warning("settings.mind", what=warning)
    _allow_many_files()
    host = loaded.settings.host
    with (
        hold(home, url="", started=SystemClock().now()) as held,
        _listening(address or host.address, host.port if port is None else port) as door,
    ):
        await _run(home, loaded, held, door)
    return 0


def _log_file(home: Home, loaded: Loaded) -> logs.LogFile:
    wanted = loaded.settings.logs
    return logs.LogFile(home.log_file, max_size=wanted.max_size, keep=wanted.keep)


@contextlib.asynccontextmanager
async def offline(path: Path) -> AsyncIterator[ASGIApp]:
    """The same application in this process while no host runs: one path, never a second writer."""
    home = open_home(path)
    loaded = load(home.path, environment())
    logs.configure("error")
    with hold(home, url="", started=SystemClock().now()):
        async with asyncio.TaskGroup() as tasks, build(home, loaded, tasks) as rooms:
            await rooms.groups.ensure_main()
            yield rooms.app


def survey(path: Path, *, is_mending: bool) -> list[Finding]:
    """What is wrong with a home before a command opens it, and so makes and closes what it can;
    a host that runs is asked for the rest."""
    home = Home(path=path.expanduser().absolute())
    if not home.path.is_dir():
        return []
    try:
        terms = terms_of(load(home.path, environment()))
    except InvalidSettingsError:  # told by the look at the sources
        terms = None
    database = home.database if terms is None else terms.database
    is_new = not home.run_dir.exists() and not database.exists()
    holder = _holder(home)
    now = SystemClock().now()

    def look() -> list[Finding]:
        found = look_at_folders(home, database)
        if holder is None:
            found += look_at_sources(database, read_settings(home))
        if terms is not None:
            url = "" if holder is None else holder.url
            found += look_at_machine(home, terms, now=now, began=begin(now), url=url)
        # What a new home lacks is no finding: the first command makes it.
        return [one for one in found if not (is_new and isinstance(one.fix, MakeFolder))]

    found = look()
    if not is_mending:
        return found
    return together(asyncio.run(mended(found, sweep=_leave_boxes)), look())


async def _leave_boxes() -> None:
    """Boxes cannot be seen from outside of the home."""


def _holder(home: Home) -> Holder | None:
    try:
        return read_holder(home)
    except OSError:
        return None


async def _run(home: Home, loaded: Loaded, held: Hold, door: socket.socket) -> None:
    async with asyncio.TaskGroup() as tasks, build(home, loaded, tasks) as rooms:
        with rooms.watch:
            ending = _signals()
            await _open_up(rooms, loaded)
            await _live(rooms, tasks, held, door, ending)
    log.info("ended")


async def _open_up(rooms: Rooms, loaded: Loaded) -> None:
    """Put in order what an earlier host left, and see what works here."""
    await rooms.sandboxes.sweep()  # R7: before the first claim
    if await rooms.groups.ensure_main() is not None:
        log.info("group.made", folder="main", chat="web:main")
    await rooms.sandboxes.probe(await _named_sandboxes(rooms, loaded))
    for channel in rooms.channels:
        with _limited(channel, "connect"):
            async with asyncio.timeout(_CONNECT):
                await channel.connect(rooms.intake)
    recovered = await rooms.store.write(rooms.clerk.recover)
    if recovered:
        log.warning("turns.recovered", count=recovered)
    claimed = await rooms.mailroom.recover()
    if claimed:
        log.warning("commands.recovered", count=claimed)


async def _live(
    rooms: Rooms,
    tasks: asyncio.TaskGroup,
    held: Hold,
    door: socket.socket,
    ending: asyncio.Event,
) -> None:
    """From the first turn to the last; `ending` asks for an end."""
    server = _Server(
        uvicorn.Config(
            rooms.app,
            http=Patience,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=_LAST_ANSWERS,
        )
    )
    living = tasks.create_task(rooms.agents.serve(), name="agents")
    delivering = tasks.create_task(rooms.delivery.serve(), name="delivery")
    mail = tasks.create_task(rooms.mailroom.serve(), name="mailroom")
    tasks.create_task(rooms.metrics.follow(rooms.feed), name="metrics")
    rounds = tasks.create_task(rooms.rounds.serve(), name="rounds")
    scheduling = tasks.create_task(rooms.scheduler.serve(), name="scheduler")
    running = tasks.create_task(rooms.engine.serve(rooms.exchange.run), name="engine")
    answering = tasks.create_task(server.serve(sockets=[door]), name="http")
    url = _url(door)
    held.announce(url)
    problems = (await rooms.status.report()).problems
    if problems:
        log.error("not_ready", url=url, why=problems)
    else:
        log.info("ready", url=url)
    await _print_link(rooms, url)
    await ending.wait()
    log.info("ending")
    rooms.feed.close()  # open streams would hold the server back
    rooms.importing.close()
    server.should_exit = True
    scheduling.cancel()
    await rooms.engine.stop(_DRAIN)
    await running
    rooms.agents.close()
    await living
    rooms.mailroom.close()
    await mail
    delivering.cancel()
    rounds.cancel()
    await answering
    for channel in rooms.channels:
        with _limited(channel, "disconnect"):
            async with asyncio.timeout(_LAST_ANSWERS):
                await channel.disconnect()


async def _print_link(rooms: Rooms, url: str) -> None:
    """On stdout only: the log is kept, and a way in has no place there."""
    link = await rooms.sessions.invite()
    line = f"Open {reachable(url)}/enter/{link.secret} (once, within five minutes)\n"
    with contextlib.suppress(OSError):  # nobody reads along
        sys.stdout.write(line)
        sys.stdout.flush()


async def _named_sandboxes(rooms: Rooms, loaded: Loaded) -> set[str]:
    """What groups ask for besides the house's own choice."""
    names = set()
    for group in await rooms.groups.all():
        # A group that asks for the impossible hears of it in its chat, not here.
        with contextlib.suppress(AgentRefusedError):
            names.add(loaded.settings.agent_for(group.folder, group.agent).sandbox)
    return names


@contextlib.contextmanager
def _limited(channel: Channel, what: str) -> Iterator[None]:
    """A network that is stuck or broken is said, in the log and by its health; the house lives."""
    try:
        yield
    except Exception:  # the border to a network's library
        log.exception("channel.failed", channel=channel.name, what=what)


def _allow_many_files() -> None:
    """Every connection and every agent takes file handles, and the usual limit is for programs
    that serve one person."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a limit that they do not grant.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _signals() -> asyncio.Event:
    """The first signal asks for an end; the second one takes it."""
    ending = asyncio.Event()

    def end() -> None:
        if ending.is_set():
            os._exit(1)
        ending.set()

    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, end)
    return ending


@contextlib.contextmanager
def _listening(address: str, port: int) -> Iterator[socket.socket]:
    """The door is ours before anything else begins: a taken port must cost nothing."""
    try:
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        # By name: on a socket of protocol 0 asyncio sets no TCP_NODELAY, and answers wait 40 ms.
        door = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        message = f"cannot listen on {address!r}: {error.strerror or error}"
        raise InvalidSettingsError(message) from error
    with door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((address, port))
            door.listen(128)
        except OSError as error:
            message = (
                f"port {port} on {address} cannot be used: {error.strerror};"
                " choose another with --port, or 0 for any free one"
            )
            raise ConflictError(message, port=port) from error
        yield door


def _url(door: socket.socket) -> str:
    address, port = door.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


class _Server(uvicorn.Server):
    """Without signal handlers of its own: the end is ours to order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
