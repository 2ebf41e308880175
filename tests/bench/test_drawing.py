from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from bench.drawing import PANELS, Panel, svg
from bench.figures import Figure

SPACE = "{http://www.w3.org/2000/svg}"
KEYS = [key for panel in PANELS for key in panel.labels]
FIGURES = [Figure(key=key, what=key, unit="ms", value=5.0) for key in KEYS]


def test_the_picture_is_well_formed_and_names_everyone() -> None:
    picture = ET.fromstring(svg(FIGURES, "today"))
    words = [one.text for one in picture.iter(f"{SPACE}text")]
    assert {"Hallporter", "NanoClaw v1.1.2", "nanobot 0.3.5"} <= set(words)
    assert {label for panel in PANELS for label in panel.labels.values()} <= set(words)


def test_bars_stay_inside_the_picture() -> None:
    picture = ET.fromstring(svg(FIGURES, "today"))
    bars = [one for one in picture.iter(f"{SPACE}rect") if one.get("class") != "ground"]
    assert all(
        float(bar.attrib["x"]) + float(bar.attrib["width"]) <= float(picture.attrib["width"])
        for bar in bars
    )


def test_figures_that_are_missing_are_left_out() -> None:
    words = [one.text for one in ET.fromstring(svg(FIGURES[:1], "today")).iter(f"{SPACE}text")]
    assert PANELS[0].labels[KEYS[0]] in words
    assert PANELS[0].labels[KEYS[1]] not in words
    assert PANELS[1].title not in words


def test_a_linear_scale_keeps_proportions() -> None:
    panel = Panel(title="t", labels={})
    assert panel.length(5.0, 20.0) == 0.25


@pytest.mark.parametrize(
    ("value", "length"), [(1000.0, 1.0), (31.6227766, 0.5), (1.0, 0.01), (-2.0, 0.01)]
)
def test_a_logarithmic_scale_keeps_ratios_and_hides_no_bar(value: float, length: float) -> None:
    panel = Panel(title="t", labels={}, floor=1.0)
    assert panel.length(value, 1000.0) == pytest.approx(length)


def test_it_can_be_read_on_a_dark_page() -> None:
    assert "prefers-color-scheme: dark" in svg(FIGURES, "today")
