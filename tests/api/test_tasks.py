from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from tests.api.front import Front

GREETING = {
    "group": "main",
    "prompt": "Say good morning.",
    "schedule_type": "cron",
    "schedule_value": "0 9 * * *",
}
HOUR = timedelta(hours=1)


async def make(operator: httpx.AsyncClient, **changes: str) -> str:
    answer = await operator.post("/api/tasks", json={**GREETING, **changes})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def test_a_task_is_made_shown_changed_listed_and_cancelled(front: Front) -> None:
    await front.register()
    await front.register("web:family", "family")
    async with front.client() as operator:
        made = await operator.post("/api/tasks", json={**GREETING, "id": "morning"})
        other = await make(operator, group="family", schedule_value="@hourly", timezone="UTC")
        changed = await operator.patch(
            "/api/tasks/morning", json={"schedule_value": "30 9 * * *", "misfire": "skip"}
        )
        shown = await operator.get("/api/tasks/morning")
        listed = (await operator.get("/api/tasks")).json()
        filtered = (await operator.get("/api/tasks?group=family")).json()
        cancelled = await operator.delete("/api/tasks/morning")
        gone = await operator.get("/api/tasks/morning")
    expected = {
        "id": "morning",
        "group": "main",
        "chat": "web:main",
        "prompt": "Say good morning.",
        "schedule_type": "cron",
        "schedule_value": "0 9 * * *",
        "context_mode": "group",
        "timezone": "Europe/Berlin",
        "misfire": "once",
        "status": "active",
        "next_run": "2026-02-20T08:00:00Z",
        "last_run": None,
    }
    later = {
        "schedule_value": "30 9 * * *",
        "misfire": "skip",
        "next_run": "2026-02-20T08:30:00Z",
    }
    assert made.status_code == 201
    assert made.json() == {"success": True, "data": expected}
    assert changed.json()["data"] == {**expected, **later} == shown.json()["data"]
    assert ([task["id"] for task in listed["data"]], listed["count"]) == (["morning", other], 2)
    assert [task["id"] for task in filtered["data"]] == [other]
    assert (cancelled.status_code, cancelled.content, gone.status_code) == (204, b"", 404)


async def test_a_task_is_paused_resumed_and_run(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        task = await make(operator)
        paused = (await operator.post(f"/api/tasks/{task}/pause")).json()["data"]
        front.clock.advance(30 * HOUR)
        resumed = (await operator.post(f"/api/tasks/{task}/resume")).json()["data"]
        run = await operator.post(f"/api/tasks/{task}/run")
        ticks = await operator.get(f"/api/tasks/{task}/ticks")
    by_hand = {
        "due": "2026-02-20T16:00:00Z",
        "state": "due",
        "why": "run by hand",
        "attempts": 0,
    }
    assert (paused["status"], paused["next_run"]) == ("paused", None)
    assert (resumed["status"], resumed["next_run"]) == ("active", "2026-02-21T08:00:00Z")
    assert (run.status_code, run.json()) == (200, {"success": True, "data": by_hand})
    assert ticks.json() == {"success": True, "data": [by_hand], "count": 1}


async def test_ticks_come_newest_first_page_by_page(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        task = await make(operator, schedule_value="0 * * * *", misfire="all")
        front.clock.advance(5 * HOUR)
        await front.scheduler.look()
        newest = (await operator.get(f"/api/tasks/{task}/ticks?limit=2")).json()["data"]
        rest = await operator.get(f"/api/tasks/{task}/ticks", params={"before": newest[-1]["due"]})
        wrong = await operator.get(f"/api/tasks/{task}/ticks?limit=0")
        naive = await operator.get(f"/api/tasks/{task}/ticks?before=2026-01-01T00:00:00")
    dues = [tick["due"][11:16] for tick in (*newest, *rest.json()["data"])]
    assert dues == ["15:00", "14:00", "13:00", "12:00", "11:00"]
    assert (wrong.status_code, naive.status_code) == (400, 400)


async def test_a_tick_that_ran_tells_when_and_how_late(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        task = await make(operator, schedule_value="0 * * * *")
        front.clock.advance(HOUR)
        await front.scheduler.look()
        front.clock.advance(timedelta(milliseconds=1500))
        opened = await front.open_turn()
        await front.answer(opened, "Good morning!")
        (tick,) = (await operator.get(f"/api/tasks/{task}/ticks")).json()["data"]
        shown = (await operator.get(f"/api/tasks/{task}")).json()["data"]
    assert (tick["state"], tick["late_ms"], tick["attempts"]) == ("ran", 1501, 1)
    assert tick["started"] == shown["last_run"] == "2026-02-19T11:00:01.501000Z"
    assert tick["ended"] == "2026-02-19T11:00:01.502000Z"


async def test_a_time_that_the_clocks_skip_is_noted(front: Front) -> None:
    await front.register()
    single = {"schedule_type": "once", "schedule_value": "2026-03-29T02:30:00"}
    async with front.client() as operator:
        made = (await operator.post("/api/tasks", json={**GREETING, **single})).json()
    assert made["data"]["next_run"] == "2026-03-29T01:30:00Z"
    assert "it will be 2026-03-29T03:30:00" in made["note"]


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        ({"schedule_value": "0 0 9 * * *"}, "schedule_value", "has 6 fields"),
        ({"schedule_type": "interval", "schedule_value": "10"}, "schedule_value", "from 1000"),
        ({"timezone": "Nowhere"}, "timezone", "is no time zone"),
        ({"prompt": ""}, "prompt", "the prompt is empty"),
        ({"id": "a/b"}, "id", "1 to 64 letters"),
        ({"promt": "Hi"}, "promt", "Extra inputs"),
    ],
)
async def test_what_does_not_fit_is_a_bad_request_with_details(
    front: Front, change: dict[str, str], field: str, told: str
) -> None:
    await front.register()
    async with front.client() as operator:
        answer = await operator.post("/api/tasks", json={**GREETING, **change})
    assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_REQUEST")
    (detail,) = answer.json()["details"]
    assert detail["field"] == field
    assert told in detail["message"]


async def test_what_is_unknown_is_not_found_and_what_is_taken_is_a_conflict(
    front: Front,
) -> None:
    await front.register()
    async with front.client() as operator:
        await make(operator, id="morning")
        taken = await operator.post("/api/tasks", json={**GREETING, "id": "morning"})
        nowhere = await operator.post("/api/tasks", json={**GREETING, "group": "nobody"})
        answers = [
            await operator.get("/api/tasks/none"),
            await operator.patch("/api/tasks/none", json={"prompt": "x"}),
            await operator.delete("/api/tasks/none"),
            await operator.get("/api/tasks/none/ticks"),
            await operator.get("/api/tasks?group=nobody"),
            *[
                await operator.post(f"/api/tasks/none/{verb}")
                for verb in ("pause", "resume", "run")
            ],
        ]
    assert (taken.status_code, taken.json()["error"]) == (409, "CONFLICT")
    assert {answer.status_code for answer in (nowhere, *answers)} == {404}


async def test_to_a_consumer_there_are_no_tasks(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        await make(operator, id="morning")
    async with front.client(await front.token()) as consumer:
        answers = [
            await consumer.get("/api/tasks"),
            await consumer.post("/api/tasks", json=GREETING),
            await consumer.get("/api/tasks/morning"),
            await consumer.delete("/api/tasks/morning"),
            await consumer.post("/api/tasks/morning/run"),
        ]
        unknown = await consumer.get("/api/nothing")
    assert {answer.status_code for answer in answers} == {404}
    assert {answer.text for answer in answers} == {unknown.text}


async def test_the_status_counts_tasks_and_tells_the_next_tick(front: Front) -> None:
    await front.register()
    async with front.client() as operator:
        empty = (await operator.get("/api/status")).json()["data"]
        await make(operator)
        await make(operator, schedule_value="0 8 * * *")
        await operator.post(f"/api/tasks/{await make(operator)}/pause")
        status = (await operator.get("/api/status")).json()["data"]
    assert (empty["tasks"], empty["next_tick"]) == ({}, None)
    assert status["tasks"] == {"active": 2, "paused": 1}
    assert status["next_tick"] == "2026-02-20T07:00:00Z"
