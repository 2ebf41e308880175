"""What the demo agent can see of the box it runs in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallporter_runner.workplace import Workplace

_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),  # cgroups v2
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # v1
)
_NO_LIMIT = 1 << 60  # bytes; v1 writes "none" as a number about this large
_MEBIBYTE = 1 << 20


def describe(workplace: Workplace) -> str:
    """A short report in Markdown."""
    folders = ", ".join(f"`{name}`" for name in _names(workplace.root)) or "none"
    interfaces = _interfaces()
    shown = ", ".join(f"`{name}`" for name in interfaces) or "none"
    way_out = "" if set(interfaces) - {"lo"} else ": no way out"
    return "\n".join(
        [
            f"I run in {_box(workplace.sandbox)}. From inside I see:",
            "",
            f"- user id **{os.getuid()}**, host name `{os.uname().nodename}`",
            f"- network interfaces: {shown}{way_out}",
            f"- the system `/` is {'**writable**' if os.access('/', os.W_OK) else 'read-only'}",
            f"- folders in `{workplace.root}`: {folders}",
            *(f"- memory limit: {limit}" for limit in _memory_limit()),
            f"- process id {os.getpid()}",
        ]
    )


def _box(sandbox: str) -> str:
    return f"the sandbox `{sandbox}`" if sandbox else "a place whose name the host did not tell"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return []


def _interfaces() -> list[str]:
    # /proc follows the network namespace of this process; /sys may show that of the host.
    lines = _read(Path("/proc/net/dev")).splitlines()
    return sorted(line.partition(":")[0].strip() for line in lines if ":" in line)


def _memory_limit() -> list[str]:
    """None, when it cannot be seen from inside: the host may enforce one all the same."""
    for path in _MEMORY_LIMITS:
        text = _read(path).strip()
        if text.isdecimal() and int(text) < _NO_LIMIT:
            return [f"{int(text) // _MEBIBYTE} MiB"]
    return []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
