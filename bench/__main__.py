"""`python -m bench`: measure, print the table, and renew what the documentation shows of it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import secrets
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench import drawing, footprint, latency, load, mail, page, starting, table, ticks
from bench.peers import NAMES, PUBLISHED
from hallporter import __version__, logs
from hallporter.sandboxes.bubblewrap import Bubblewrap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bench.figures import Figure

DOCS = Path(__file__).parents[1] / "docs"
_BETWEEN = re.compile(r"(?<=<!-- figures -->\n).*(?=<!-- end of figures -->)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How often each thing is done."""

    journeys: int
    words: int  # that each chat of the load says
    rest: float  # seconds
    starts: int


FULL = Extent(journeys=50, words=100, rest=20.0, starts=7)
QUICK = Extent(journeys=10, words=20, rest=5.0, starts=2)


async def measure(extent: Extent) -> Sequence[Figure]:
    """One part after the other, so that none disturbs another."""
    fitness = await Bubblewrap(installation=secrets.token_hex(4)).probe()
    if not fitness.works:
        sys.exit(f"bench: the sandbox that is measured does not work here: {fitness.problem}")
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="hallporter-bench-") as name:
        folder = Path(name)
        parts: dict[str, Callable[[], Awaitable[Sequence[Figure]]]] = {
            "latency, 1 group": lambda: latency.measure(folder, 1, extent.journeys),
            "latency, 100 groups": lambda: latency.measure(folder, 100, extent.journeys),
            "an agent's own messages": lambda: mail.measure(folder, extent.journeys),
            "ticks": lambda: ticks.measure(folder, extent.journeys, extent.rest),
            "load": lambda: load.measure(folder, extent.words),
            "footprint": lambda: footprint.measure(folder, extent.rest),
            "the page": lambda: page.measure(folder, extent.journeys, extent.rest),
            "starting": lambda: starting.measure(folder, extent.starts),
        }
        for part, work in parts.items():
            print(f"measuring: {part}", file=sys.stderr, flush=True)
            figures.extend(await work())
    return figures


def publish(docs: Path, figures: Sequence[Figure], when: str) -> None:
    """The figures as JSON, as a picture, and in the page that explains them."""
    facts = {
        "when": when,
        "version": __version__,
        "machine": machine(),
        "figures": [{**asdict(figure), "is_missed": figure.is_missed} for figure in figures],
        "peers": {
            key: {name: asdict(known) for name, known in peers.items()}
            for key, peers in PUBLISHED.items()
        },
    }
    (docs / "bench.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    (docs / "bench.svg").write_text(drawing.svg(figures, when))
    place = docs / "bench.md"
    words = f"{when}, {machine()}.\n\n{table.markdown(figures)}\n"
    place.write_text(_BETWEEN.sub(lambda _: words, place.read_text()))


def machine() -> str:
    """What matters of it, and no name."""
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {platform.machine()}, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a short look; the documentation is left as it is"
    )
    is_quick = parser.parse_args().quick
    logs.configure("error")
    figures = asyncio.run(measure(QUICK if is_quick else FULL))
    when = datetime.now(UTC).date().isoformat()
    print(f"\nHallporter {__version__}, {when}, {machine()}\n\n{table.text(figures)}\n")
    print(f"Figures of {' and '.join(NAMES)} were measured by us on another day, with the same")
    print("shape of harness. Differences and ratios of one run count; absolute times are noise.")
    missed = [figure.what for figure in figures if figure.is_missed]
    print(f"Goals missed: {'; '.join(missed)}" if missed else "All goals are met.")
    if not is_quick:
        publish(DOCS, figures, when)


if __name__ == "__main__":
    main()
