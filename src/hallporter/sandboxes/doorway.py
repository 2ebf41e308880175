"""What a program passes through on its way into a box: it is tied to the host, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Words: the host's number, how many groups, their doors, the program. A host that was killed
# before the tie was made is no longer the parent; then nothing is started.
_SCRIPT = """
[ "$PPID" = "$1" ] || exit 125
n=$2; shift 2
while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 125; shift; n=$((n-1)); done
exec "$@"
"""


def through(argv: Sequence[str], *, host: int, setpriv: str, doors: Sequence[str]) -> list[str]:
    """The command that becomes `argv`: dying with process `host`, inside the control groups.

    Without `setpriv` (empty) it is not tied.
    """
    tie = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
    return [*tie, "/bin/sh", "-c", _SCRIPT, "sh", str(host), str(len(doors)), *doors, *argv]
