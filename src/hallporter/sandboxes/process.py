"""The sandbox that is none: a plain process, for those who ask for it by name."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.brief import Fitness, Launch
from hallporter.domain.errors import AgentFailedError, HallporterError
from hallporter.domain.ids import AgentId
from hallporter.sandboxes import cgroups, leftovers, machine
from hallporter.sandboxes.child import start
from hallporter.sandboxes.doorway import through
from hallporter.sandboxes.mounts import behind, require_mounts
from hallporter.sandboxes.programs import require_program, require_workdir
from hallporter.sandboxes.view import View

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Sequence

    from hallporter.sandboxes.cgroups import Fence
    from hallporter.sandboxes.child import Child

WARNING = (
    "A plain process protects nothing: the agent runs as the host's user, can read and write all "
    "that the host can, keys and other groups' folders included, and has the host's network."
)


class ProcessBox:
    """A program and what it forked, held together by their mark alone."""

    def __init__(self, *, child: Child, view: View, fence: Fence, mark: leftovers.Mark) -> None:
        self._child = child
        self._view = view
        self._fence = fence
        self._mark = mark
        self._ending = asyncio.Lock()
        self._is_cleared = False

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def stdin(self) -> StreamWriter:
        return self._child.stdin

    @property
    def stdout(self) -> StreamReader:
        return self._child.stdout

    @property
    def stderr(self) -> StreamReader:
        return self._child.stderr

    def interrupt(self) -> None:
        self._child.send(signal.SIGINT)

    def terminate(self) -> None:
        self._child.send(signal.SIGTERM)

    def kill(self) -> None:
        if not self._child.has_exited:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        leftovers.kill_box(self._mark)

    async def wait(self) -> int:
        code = await self._child.exit_code()
        async with self._ending:
            if not self._is_cleared:
                await leftovers.end_box(self._mark)
                await self._fence.remove()
                await asyncio.to_thread(self._view.remove)
                self._is_cleared = True
        return code


class Process:
    """Programs as the host's own user; `run_dir` holds a folder of links for each of them."""

    name = "process"

    def __init__(
        self,
        *,
        installation: str,
        run: str = "0",
        run_dir: Path,
        path: str = machine.PATH,
        hierarchies: Sequence[cgroups.Hierarchy] | None = None,
    ) -> None:
        self._installation = installation
        self._run = run
        self._run_dir = run_dir
        self._path = path
        self._fences = cgroups.Fences(
            cgroups.find() if hierarchies is None else hierarchies, installation=installation
        )
        # Without it an agent outlives a killed host until the next one sweeps.
        self._setpriv = shutil.which("setpriv", path=machine.PATH) or ""

    async def probe(self) -> Fitness:
        launch = Launch(
            name=AgentId(f"trial-{secrets.token_hex(4)}"),
            argv=("/bin/sh", "-c", ":"),
            mounts=(),
            workdir="/",
        )
        try:
            box = await self.launch(launch)
            code = await box.wait()
        except HallporterError as error:
            return Fitness(problem=error.message)
        return Fitness(
            problem="" if code == 0 else f"a trial run of /bin/sh ended with {code}",
            unenforced=self._fences.unenforced,
            warnings=(WARNING,),
        )

    async def launch(self, launch: Launch) -> ProcessBox:
        view = View(self._run_dir.absolute() / launch.name, launch.mounts)
        mark = leftovers.Mark(installation=self._installation, run=self._run, name=launch.name)
        environment = {
            "PATH": self._path,
            "LANG": machine.LANG,
            "HOME": machine.HOME,
            "CLAUDE_CONFIG_DIR": f"{machine.HOME}/.claude",
            **launch.environment,
        }
        self._require(launch, environment["PATH"])
        fence = self._fences.put_up(launch.name, launch.limits)
        try:
            view.make()
            child = await start(
                through(
                    [view.word(word) for word in launch.argv],
                    host=os.getpid(),
                    setpriv=self._setpriv,
                    doors=fence.doors,
                ),
                environment={
                    **{name: view.word(value) for name, value in environment.items()},
                    "HALLPORTER_WORKSPACE": str(view.folder),
                    leftovers.MARK: str(mark),
                },
                workdir=view.path(launch.workdir),
            )
        except BaseException as error:
            view.remove()
            await fence.remove()
            if isinstance(error, OSError):
                raise AgentFailedError(f"The agent's folder could not be made: {error}") from error
            raise
        return ProcessBox(child=child, view=view, fence=fence, mark=mark)

    async def sweep(self) -> int:
        ended = await leftovers.end_all(self._installation)
        self._fences.sweep()
        if self._run_dir.is_dir():
            for folder in self._run_dir.iterdir():
                await asyncio.to_thread(View(folder, ()).remove)
        return ended

    def _require(self, launch: Launch, path: str) -> None:
        def host_path(inside: str) -> Path:
            return behind(inside, launch.mounts) or Path(inside)

        require_mounts(launch.mounts)
        require_program(launch, path=path, uid=os.geteuid(), behind=host_path)
        require_workdir(launch, behind=host_path)
