"""Moving in over HTTP: for operators, one at a time, and told line by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallporter.domain.errors import StoreUnavailableError
from hallporter.switchboard.importing import moving
from hallporter.switchboard.importing.importing import Progress
from tests.api.front import Front
from tests.imports.home import Source, empty, lived_in


def body(source: Source) -> dict[str, object]:
    return {"path": str(source.path), "config": str(source.config)}


async def test_to_a_consumer_it_does_not_exist(front: Front, tmp_path: Path) -> None:
    async with front.client(await front.token()) as consumer:
        answer = await consumer.post("/api/imports/nanoclaw", json=body(empty(tmp_path)))
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"path": "relative"}, "is no whole path"),
        ({"path": "/nowhere"}, "no NanoClaw v1 is at /nowhere"),
        ({}, "path"),
        ({"path": "/x", "more": 1}, "more"),
    ],
)
async def test_what_cannot_be_is_refused(front: Front, wish: dict[str, object], told: str) -> None:
    async with front.client() as operator:
        answer = await operator.post("/api/imports/nanoclaw", json=wish)
    assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_REQUEST")
    assert told in answer.json()["message"]


async def test_a_config_folder_that_is_not_there_is_refused(front: Front, tmp_path: Path) -> None:
    wish = {**body(empty(tmp_path)), "config": str(tmp_path / "nowhere")}
    async with front.client() as operator:
        answer = await operator.post("/api/imports/nanoclaw", json=wish)
    assert (answer.status_code, "allow-lists" in answer.json()["message"]) == (400, True)


async def test_one_import_at_a_time_and_one_that_was_cut_short_is_repeated(
    front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "BATCH", 2)
    source = lived_in(tmp_path)
    steps = front.desk.importing.run(str(source.path), str(source.config), is_dry_run=False)
    async with front.client() as operator:
        for _ in range(6):
            assert isinstance(await anext(steps), Progress)
        refused = await operator.post("/api/imports/nanoclaw", json=body(source))
        assert (refused.status_code, refused.json()["error"]) == (409, "CONFLICT")
        await steps.aclose()
        again = await operator.post("/api/imports/nanoclaw", json=body(source))
    counts = json.loads(again.text.splitlines()[-1])["report"]["counts"]
    carried, there = counts["messages"]["carried"], counts["messages"]["there"]
    assert carried + there == 11
    assert 0 < there < 11
    assert counts["tasks"] == {"carried": 4, "there": 0, "skipped": 0}


async def test_trouble_on_the_way_is_the_last_line(
    front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **_more: object) -> None:
        raise StoreUnavailableError("the disk is full")

    monkeypatch.setattr(moving, "tick_of", away)
    async with front.client() as operator:
        answer = await operator.post("/api/imports/nanoclaw", json=body(lived_in(tmp_path)))
    assert answer.status_code == 200
    assert json.loads(answer.text.splitlines()[-1]) == {
        "error": "STORE_UNAVAILABLE",
        "message": "the disk is full",
    }
