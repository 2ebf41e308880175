from __future__ import annotations

import json
from pathlib import Path

from bench.__main__ import DOCS, publish
from bench.figures import Figure

FIGURES = [Figure(key="start", what="process start → ready", unit="s", value=0.5)]


def test_publishing_twice_renews_the_figures_and_keeps_the_words(tmp_path: Path) -> None:
    (tmp_path / "bench.md").write_text(
        "before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n"
    )
    publish(tmp_path, FIGURES, "yesterday")
    publish(tmp_path, FIGURES, "today")
    page = (tmp_path / "bench.md").read_text()
    assert page.startswith("before\n<!-- figures -->\ntoday")
    assert page.endswith("<!-- end of figures -->\nafter\n")
    assert page.count("process start → ready") == 1
    assert json.loads((tmp_path / "bench.json").read_text())["figures"][0]["value"] == 0.5
    assert (tmp_path / "bench.svg").read_text().startswith("<svg")


def test_the_page_of_the_documentation_has_a_place_for_them() -> None:
    page = (DOCS / "bench.md").read_text()
    assert page.index("<!-- figures -->\n") < page.index("<!-- end of figures -->")
