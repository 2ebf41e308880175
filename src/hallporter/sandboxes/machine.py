"""What every box shows of the machine it runs on: programs and libraries, nobody's files."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

# Where programs are looked for, inside and (for our own tools) outside.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LANG = "C.UTF-8"

HOME = "/home/node"

# Symbolic links to /usr on most systems, folders on some.
_BESIDE_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

# What programs need to run and to check certificates; nothing that tells of people or networks.
_ETC = (
    "alternatives",
    "ca-certificates",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "pki",
    "ssl",
)

# Files of the box's own, by their path inside.
FILES = {
    "/etc/passwd": f"root:x:0:0:root:/:/usr/sbin/nologin\nnode:x:1000:1000:node:{HOME}:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "/etc/group": "root:x:0:\nnode:x:1000:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/hosts": "127.0.0.1 localhost agent\n::1 localhost\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The read-only part of a box: host folders shown at the same path, and links."""

    system: tuple[str, ...]
    links: tuple[tuple[str, str], ...]  # path, what it leads to
    etc: tuple[str, ...]
    extra: tuple[str, ...]  # folders that may lie where only their owner can go

    def shows(self, path: str) -> bool:
        """Whether a path inside is the host's own."""
        roots = (*self.system, *self.etc, *self.extra, *(link for link, _ in self.links))
        return any(Path(path).is_relative_to(root) for root in roots)


def survey(root: Path = Path("/"), *, prefix: str | None = None) -> Machine:
    """Look at this machine; `prefix` is where the running Python is installed."""
    system = ["/usr"]
    links = []
    for name in _BESIDE_USR:
        path = root / name
        if path.is_symlink():
            links.append((f"/{name}", str(path.readlink())))
        elif path.is_dir():
            system.append(f"/{name}")
    python = Path(os.path.realpath(sys.base_prefix if prefix is None else prefix))
    shown = any(python.is_relative_to(folder) for folder in system)
    return Machine(
        system=tuple(system),
        links=tuple(links),
        etc=tuple(f"/etc/{name}" for name in _ETC if (root / "etc" / name).exists()),
        extra=() if shown or python == Path("/") else (str(python),),
    )


def interpreter() -> str:
    """The running Python as a box sees it: the real program behind any virtual environment."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = Path(sys.base_prefix, "bin", name)
    return os.path.realpath(program if program.exists() else sys.executable)
