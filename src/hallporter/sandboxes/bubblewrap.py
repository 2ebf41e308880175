"""The sandbox without a daemon: bubblewrap, with every wall it has.

As an ordinary user one bubblewrap makes the box. As root a first one sets a stage: the folders to
be shown, bound where another user can reach them even if they lie below a folder that only root
may enter. Then root's rights are dropped for good, and a second one makes the same box from there.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import secrets
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.brief import Fitness, Launch, Limits
from hallporter.domain.errors import AgentFailedError, AgentRefusedError, HallporterError
from hallporter.domain.ids import AgentId
from hallporter.sandboxes import cgroups, layout, leftovers, machine, seccomp, trial
from hallporter.sandboxes.box import NamespaceBox
from hallporter.sandboxes.child import start
from hallporter.sandboxes.doorway import through
from hallporter.sandboxes.handed import Handed
from hallporter.sandboxes.mounts import behind, require_mounts, require_usable
from hallporter.sandboxes.ownership import hand_over
from hallporter.sandboxes.programs import require_program, require_workdir

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hallporter.domain.brief import Mount

# Processes of bubblewrap's own in a box: not the agent's to pay for.
_OVERHEAD = 4

# How many generations the program is away from the first process that our bubblewrap makes: on a
# stage the second one's watcher and first process stand between.
_DEPTH, _DEPTH_STAGED = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The programs that make a box."""

    bwrap: str
    setpriv: str  # empty where there is none; root needs it
    can_disable_userns: bool
    can_bind_open: bool  # what is mounted can be handed over as an open file


def find_tools(path: str, *, is_root: bool) -> Tools:
    """Raises `AgentRefusedError` saying what to install."""
    bwrap = shutil.which("bwrap", path=path)
    if bwrap is None:
        raise AgentRefusedError("bubblewrap is not installed: apt-get install bubblewrap")
    setpriv = shutil.which("setpriv", path=path)
    if is_root and setpriv is None:
        raise AgentRefusedError("setpriv is not installed: apt-get install util-linux")
    told = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(int(number) for number in re.findall(r"\d+", told)[:2])
    # A mend of a hole that distributions have put into versions of any age.
    can = subprocess.run([bwrap, "--help"], capture_output=True, text=True, check=False)
    return Tools(
        bwrap=bwrap,
        setpriv=setpriv or "",
        can_disable_userns=version >= (0, 8),
        can_bind_open="--bind-fd" in can.stdout + can.stderr,
    )


class Bubblewrap:
    """Boxes by bubblewrap; `uid` is who the program is outside when the host is root."""

    name = "bubblewrap"

    def __init__(
        self,
        *,
        installation: str,
        run: str = "0",
        uid: int = 1000,
        path: str = machine.PATH,
        hierarchies: Sequence[cgroups.Hierarchy] | None = None,
    ) -> None:
        self._installation = installation
        self._run = run
        self._is_root = os.geteuid() == 0
        self._uid = uid if self._is_root else os.geteuid()
        self._path = path
        self._fences = cgroups.Fences(
            cgroups.find() if hierarchies is None else hierarchies, installation=installation
        )
        self._machine = machine.survey()
        self._filter = seccomp.program(platform.machine())
        self._tools: Tools | None = None

    async def probe(self) -> Fitness:
        launch = Launch(
            name=AgentId(f"trial-{secrets.token_hex(4)}"),
            argv=(machine.interpreter(), "-I", "-S", "-c", trial.PROGRAM),
            mounts=(),
            workdir="/",
            limits=trial.LIMITS,
        )
        try:
            box = await self.launch(launch)
        except HallporterError as error:
            return Fitness(problem=error.message)
        try:
            async with asyncio.timeout(trial.PATIENCE):
                output, errors = await asyncio.gather(box.stdout.read(), box.stderr.read())
                code = await box.wait()
        except TimeoutError:
            return Fitness(problem=f"a trial run did not end within {trial.PATIENCE:.0f} seconds")
        finally:
            box.kill()
            await box.wait()
        if code != 0:
            return Fitness(problem=trial.explain(code, errors))
        return self._judge(trial.read(output))

    async def launch(self, launch: Launch) -> NamespaceBox:
        tools = self._find_tools()
        environment = {
            "PATH": machine.PATH,
            "HOME": machine.HOME,
            "LANG": machine.LANG,
            **launch.environment,
        }
        self._require(launch, environment["PATH"])
        fence = self._fences.put_up(launch.name, _with_overhead(launch.limits))
        try:
            return await self._start(tools, launch, environment, fence)
        except BaseException as error:
            await fence.remove()
            if isinstance(error, OSError):
                raise AgentFailedError(f"The agent's box could not be made: {error}") from error
            raise

    async def sweep(self) -> int:
        ended = await leftovers.end_all(self._installation)
        self._fences.sweep()
        return ended

    def _find_tools(self) -> Tools:
        if self._tools is None:
            self._tools = find_tools(self._path, is_root=self._is_root)
        return self._tools

    def _require(self, launch: Launch, path: str) -> None:
        def host_path(inside: str) -> Path | None:
            found = behind(inside, launch.mounts)
            if found is None and self._machine.shows(inside):
                found = Path(inside)
            return found

        require_mounts(launch.mounts)
        if self._is_root:
            require_usable(launch.mounts, self._uid)
        require_program(launch, path=path, uid=self._uid, behind=host_path)
        if launch.workdir not in ("/", *layout.SCRATCH):
            require_workdir(launch, behind=host_path)

    async def _start(
        self, tools: Tools, launch: Launch, environment: Mapping[str, str], fence: cgroups.Fence
    ) -> NamespaceBox:
        if self._is_root:
            for mount in launch.mounts:
                if mount.writable and not mount.is_foreign:
                    await asyncio.to_thread(hand_over, mount.source, self._uid)
        mark = leftovers.Mark(installation=self._installation, run=self._run, name=launch.name)
        with Handed() as handed, ExitStack() as ours:
            status, status_end = handed.pipe()
            ours.callback(os.close, status)
            command = self._command(
                tools=tools,
                launch=launch,
                environment=environment,
                mark=mark,
                handed=handed,
                status=status_end,
            )
            child = await start(
                through(command, host=os.getpid(), setpriv=tools.setpriv, doors=fence.doors),
                environment={"PATH": self._path, leftovers.MARK: str(mark)},
                pass_fds=handed.descriptors,
                pipes_for=self._uid if self._is_root else None,
            )
            ours.pop_all()
        depth = _DEPTH_STAGED if self._is_root else _DEPTH
        return NamespaceBox(child=child, status=status, depth=depth, fence=fence, mark=mark)

    def _command(
        self,
        *,
        tools: Tools,
        launch: Launch,
        environment: Mapping[str, str],
        mark: leftovers.Mark,
        handed: Handed,
        status: int,
    ) -> list[str]:
        places = _held(launch.mounts, handed, can_bind_open=tools.can_bind_open)
        words = [
            *layout.walls(
                can_disable_userns=tools.can_disable_userns,
                seccomp=None if self._filter is None else handed.file(self._filter),
            ),
            *layout.room(
                self._machine,
                {path: handed.file(text.encode()) for path, text in machine.FILES.items()},
                launch.mounts,
                places=places,
                is_staged=self._is_root,
            ),
            *layout.surroundings(launch.workdir, environment),
        ]
        # Said openly, for all to see: the rest is nobody's business.
        marked = ["--setenv", leftovers.MARK, str(mark), "--", *launch.argv]
        if not self._is_root:
            words += layout.leash(status)
            return [tools.bwrap, "--args", str(handed.words(words)), *marked]
        stage = [*layout.stage(self._machine, launch.mounts, places), *layout.leash(status)]
        return [
            *(tools.bwrap, "--args", str(handed.words(stage)), "--"),
            *(tools.setpriv, "--reuid", f"{self._uid}", "--regid", f"{self._uid}"),
            *("--clear-groups", tools.bwrap, "--args", str(handed.words(words)), *marked),
        ]

    def _judge(self, finding: trial.Finding) -> Fitness:
        unenforced = list(self._fences.unenforced)
        is_claimed = not any(told.startswith("pids") for told in unenforced)
        if is_claimed and not finding.is_counted:
            unenforced.append("pids limit: the control group was made, but had no effect")
        if self._filter is None:
            unenforced.append(f"system call filter: there is none for {platform.machine()}")
        return Fitness(problem=finding.problem, unenforced=tuple(unenforced))


def _held(mounts: Sequence[Mount], handed: Handed, *, can_bind_open: bool) -> Mapping[str, int]:
    """The operator's folders, open, by their targets. They were judged by their paths, and whoever
    may write above one could put a link there before it is mounted."""
    places = {}
    for mount in mounts:
        if not mount.is_foreign:
            continue
        if not can_bind_open:
            raise AgentRefusedError(
                f"{mount.source} cannot be shown as {mount.target}: this bubblewrap cannot be kept"
                " from mounting another folder that is put in its place (it has no --bind-fd);"
                " update it, or take the folder out of the mounts"
            )
        try:
            places[mount.target] = handed.place(mount.source)
        except OSError as error:
            raise AgentRefusedError(
                f"{mount.source}, to be shown as {mount.target}, is not what it was when it was"
                f" looked at: {error}; see who may write there",
                source=str(mount.source),
            ) from error
    return places


def _with_overhead(limits: Limits) -> Limits:
    return limits if limits.pids is None else replace(limits, pids=limits.pids + _OVERHEAD)
