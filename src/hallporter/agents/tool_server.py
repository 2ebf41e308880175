"""The runner's MCP server as a program that any agent can start, whatever its own Python is."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hallporter.domain.brief import Mount

PROGRAM = "/app/bin/hallporter-mcp"
VARIABLE = "HALLPORTER_MCP"
_LIBRARY = "mcp"
_MODE = 0o755  # whatever the umask says: a root host's agents are not root

# It finds everything by its own place, for clients start servers with an empty environment: `/app`
# in a box; without one, the folder `app` among the links that stand in for it.
_PROGRAM = """\
#!/bin/sh
app=$(cd "$(dirname "$0")" && pwd -L)
app=${{app%/bin}}
root=${{app%/app}}
export HALLPORTER_WORKSPACE="${{HALLPORTER_WORKSPACE:-${{root:-/workspace}}}}"
export PYTHONPATH={path}
export PYTHONDONTWRITEBYTECODE=1
exec {python} -S -m hallporter_runner mcp
"""
_CLOSED = """\
#!/bin/sh
echo {sentence} >&2
exit 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """The folder with the program, and those with the packages that it needs."""

    folder: Path
    libraries: tuple[Path, ...]

    def mounts(self) -> tuple[Mount, ...]:
        """Read-only, beside the runner."""
        return (
            Mount(source=self.folder, target=str(Path(PROGRAM).parent), writable=False),
            *(
                Mount(source=folder, target=f"/app/packages/{number}", writable=False)
                for number, folder in enumerate(self.libraries)
            ),
        )


def installed_libraries() -> tuple[Path, ...]:
    """Where this Python keeps packages, if the one for MCP is among them; nothing is imported."""
    if find_spec(_LIBRARY) is None:
        return ()
    folders = dict.fromkeys(map(Path, sys.path))
    return tuple(folder for folder in folders if _holds_packages(folder))


def install(folder: Path, *, python: str, libraries: tuple[Path, ...]) -> ToolServer:
    """Write the program; `python` is an interpreter that runs inside the sandboxes."""
    closed = [library for library in libraries if os.geteuid() == 0 and not _is_open(library)]
    if closed:
        text = _CLOSED.format(
            sentence=shlex.quote(
                f"the MCP server's packages can be read by root alone: chmod -R o+rX {closed[0]}"
            )
        )
        libraries = ()
    else:
        places = ("$app/src", *(f"$app/packages/{number}" for number in range(len(libraries))))
        text = _PROGRAM.format(path=f'"{":".join(places)}"', python=shlex.quote(python))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(_MODE)
    # Renamed into its name: `doctor` writes it too, beside a host whose agents start it.
    fresh = folder / f"{os.getpid()}.tmp"
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(_MODE)
    fresh.rename(folder / Path(PROGRAM).name)
    return ToolServer(folder=folder, libraries=libraries)


def _holds_packages(folder: Path) -> bool:
    return folder.name in ("site-packages", "dist-packages") and folder.is_dir()


def _is_open(library: Path) -> bool:
    """Whether others may read it; those who install do so with one umask for all."""
    paths = (library, *(library / _LIBRARY / name for name in ("", "__init__.py")))
    return all(path.stat().st_mode & stat.S_IROTH for path in paths if path.exists())
