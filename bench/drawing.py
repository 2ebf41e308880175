"""The figures as a picture: one bar for us and one for each peer, drawn by hand as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from bench.peers import NAMES, published
from bench.table import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.figures import Figure

# In pixels.
_WIDTH, _MARGIN, _LEFT, _RIGHT = 760, 24, 250, 640
_BAR, _GAP, _TITLE = 13, 14, 34

_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 } .panel { font-weight: 600 }
  .small { font-size: 11px }
  .ground { fill: #ffffff } .axis { stroke: #d0d7de }
  .bar0 { fill: #0969da } .bar1 { fill: #bf8700 } .bar2 { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .ground { fill: #0d1117 } .axis { stroke: #30363d }
    .bar0 { fill: #4493f8 } .bar1 { fill: #d29922 } .bar2 { fill: #ab7df8 }
  }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Figures of one unit on one scale; on a logarithmic one `floor` is where bars begin."""

    title: str
    labels: Mapping[str, str]  # by the key of a figure
    floor: float = 0.0

    def length(self, value: float, most: float) -> float:
        """The share of the full width that a value gets when `most` gets all of it."""
        if not self.floor:
            return value / most
        # A bar of no length would look like a missing one; a difference may even be negative.
        beyond = max(value / self.floor, 1.0)
        return max(0.01, math.log(beyond) / math.log(most / self.floor))


PANELS = (
    Panel(
        title="Milliseconds, logarithmic: shorter is better",
        labels={
            "cold.above": "message → agent, beyond the spawn",
            "warm.file": "follow-up → agent",
            "warm.delivered": "answer → delivered",
            "mail.delivered": "agent's own message → delivered",
        },
        floor=1.0,
    ),
    Panel(
        title="Seconds: shorter is better",
        labels={"start": "start → ready", "restart": "crash → first answer"},
    ),
    Panel(title="Megabytes: shorter is better", labels={"rss.100": "memory, 100 groups"}),
    Panel(title="Percent of one core: shorter is better", labels={"cpu.100": "idle, 100 groups"}),
    Panel(
        title="Messages answered per second, logarithmic: longer is better",
        labels={"answered.rate": "16 chats side by side"},
        floor=1.0,
    ),
)


@dataclass(frozen=True, slots=True)
class _Bar:
    who: int  # 0 are we
    value: float | None
    words: str


def svg(figures: Sequence[Figure], when: str) -> str:
    """The whole picture; figures that are not there are left out."""
    known = {figure.key: figure for figure in figures}
    body: list[str] = []
    y = _MARGIN + 12.0
    body.append(_text(_MARGIN, y, "Hallporter beside its peers", "title"))
    y += 22
    body.extend(_legend(y))
    y += 12
    for panel in PANELS:
        shown = [known[key] for key in panel.labels if key in known]
        if shown:
            y += _TITLE
            body.append(_text(_MARGIN, y - 10, panel.title, "panel"))
            drawn, y = _panel(panel, shown, y)
            body.extend(drawn)
    y += 20
    body.append(
        _text(
            _MARGIN,
            y,
            f"Ours: {when}, stub agent in a real sandbox. Peers: measured by us on another day.",
            "small",
        )
    )
    height = round(y + _MARGIN)
    size = f'width="{_WIDTH}" height="{height}"'
    named = 'role="img" aria-label="Benchmark figures"'
    space = "http://www.w3.org/2000/svg"
    return "\n".join(
        (
            f'<svg xmlns="{space}" {size} viewBox="0 0 {_WIDTH} {height}" {named}>',
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" {size} rx="6"/>',
            *body,
            "</svg>\n",
        )
    )


def _panel(panel: Panel, figures: Sequence[Figure], y: float) -> tuple[list[str], float]:
    rows = [(figure, list(_bars(figure))) for figure in figures]
    most = max(bar.value for _, bars in rows for bar in bars if bar.value is not None)
    top = y
    drawn: list[str] = []
    for figure, bars in rows:
        middle = y + len(bars) * _BAR / 2 + 4
        drawn.append(_text(_LEFT - 10, middle, panel.labels[figure.key], "end"))
        for bar in bars:
            width = 0.0
            if bar.value is not None:
                width = panel.length(bar.value, most) * (_RIGHT - _LEFT)
                drawn.append(
                    f'<rect class="bar{bar.who}" x="{_LEFT}" y="{y:.1f}" width="{width:.1f}"'
                    f' height="{_BAR - 2}"/>'
                )
            drawn.append(_text(_LEFT + width + 6, y + _BAR - 3.5, bar.words, "small"))
            y += _BAR
        y += _GAP
    axis = f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="{top - 3}" y2="{y - _GAP + 3}"/>'
    return [axis, *drawn], y


def _bars(figure: Figure) -> Iterator[_Bar]:
    yield _Bar(0, figure.value, f"{number(figure.value)} {figure.unit}")
    for who, name in enumerate(NAMES, start=1):
        peer = published(figure.key, name)
        if peer is not None:
            words = peer.note if peer.value is None else f"{number(peer.value)} {figure.unit}"
            yield _Bar(who, peer.value, words)


def _legend(y: float) -> Iterator[str]:
    x = float(_MARGIN)
    for who, name in enumerate(("Hallporter", *NAMES)):
        yield f'<rect class="bar{who}" x="{x}" y="{y - 10}" width="11" height="11"/>'
        yield _text(x + 17, y, name)
        x += 150


def _text(x: float, y: float, words: str, look: str = "") -> str:
    anchor = ' text-anchor="end"' if look == "end" else ""
    named = f' class="{look}"' if look and look != "end" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}{anchor}>{escape(words)}</text>'
