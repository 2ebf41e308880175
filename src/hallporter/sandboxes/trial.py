"""A trial run that shows whether a box holds what it promises."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hallporter.domain.brief import Limits

LIMITS = Limits(memory=256 << 20, pids=16)
PATIENCE = 20.0  # seconds

_FORKS = 64  # tries, well above the limit

PROGRAM = f"""
import json, os, signal
def may(act):
    try:
        act()
    except OSError:
        return False
    return True
with open("/proc/net/dev") as lines:
    networks = [line.split(":")[0].strip() for line in lines if ":" in line]
children = []
def fork():
    child = os.fork()
    if not child:
        signal.pause()
    children.append(child)
while len(children) < {_FORKS} and may(fork):
    pass
for child in children:
    os.kill(child, signal.SIGKILL)
print(json.dumps({{
    "uid": os.getuid(),
    "networks": networks,
    "writes_root": may(lambda: os.mkdir("/trial")),
    "forks": len(children),
}}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the program saw from inside."""

    uid: int
    networks: tuple[str, ...]
    writes_root: bool
    forks: int

    @property
    def is_counted(self) -> bool:
        """Whether the limit on processes had an effect."""
        return self.forks < _FORKS

    @property
    def problem(self) -> str:
        """The wall that does not stand, empty when all do."""
        if self.uid == 0:
            return "programs run as root inside"
        if self.networks != ("lo",):
            return f"programs see the network inside ({', '.join(self.networks)})"
        if self.writes_root:
            return "programs can write to the system inside"
        return ""


def read(output: bytes) -> Finding:
    """What the program printed."""
    seen = json.loads(output)
    return Finding(
        uid=seen["uid"],
        networks=tuple(seen["networks"]),
        writes_root=seen["writes_root"],
        forks=seen["forks"],
    )


def explain(code: int, errors: bytes) -> str:
    """Why a trial run failed, and what to do about it where that is known."""
    said = errors.decode(errors="replace").strip().splitlines()
    last = said[-1] if said else "it said nothing"
    if "namespace" in last or "uid map" in last:
        return (
            f"user namespaces are not allowed here ({last}): allow them with "
            "sysctl kernel.unprivileged_userns_clone=1 (Debian) or "
            "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, "
            "run it with more rights"
        )
    return f"a trial run ended with {code}: {last}"
