from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from hallporter.domain.errors import DiskError
from hallporter.domain.happening import Lagged
from hallporter.domain.ids import ChatId
from hallporter.ports import Signals
from hallporter.switchboard.status import LiveAgentInfo
from tests.api.front import MAIN, PATIENCE, Front

FAMILY = {"chat": "web:family", "name": "Family", "folder": "family"}


async def test_a_group_is_made_shown_changed_and_removed(front: Front) -> None:
    await front.register(is_main=True)
    async with front.client() as operator:
        made = await operator.post("/api/groups", json=FAMILY)
        changed = await operator.patch("/api/groups/family", json={"name": "The family"})
        shown = await operator.get("/api/groups/family")
        listed = await operator.get("/api/groups")
        removed = await operator.delete("/api/groups/family")
        gone = await operator.get("/api/groups/family")
    expected = {
        "chat": "web:family",
        "name": "Family",
        "folder": "family",
        "trigger": "@Andy",
        "requires_trigger": True,
        "is_main": False,
        "assistant_name": None,
        "senders": None,
        "agent": "demo",
        "agent_settings": {},
    }
    assert made.status_code == 201
    assert made.json() == {"success": True, "data": expected}
    assert changed.json()["data"] == {**expected, "name": "The family"} == shown.json()["data"]
    assert listed.json()["count"] == 2
    assert [group["folder"] for group in listed.json()["data"]] == ["main", "family"]
    assert (removed.status_code, removed.content, gone.status_code) == (204, b"", 404)
    assert front.evicted == []


async def test_a_groups_own_agent_is_stored_and_shown(front: Front) -> None:
    settings = {"command": ["python3", "agent.py"]}
    async with front.client() as operator:
        body = {**FAMILY, "agent": "command", "agent_settings": settings}
        made = (await operator.post("/api/groups", json=body)).json()["data"]
        refused = await operator.patch("/api/groups/family", json={"agent": "nonsense"})
        moved = await operator.patch(
            "/api/groups/family", json={"agent_settings": {"sandbox": "process"}}
        )
    assert made["agent"] == "command"
    assert made["agent_settings"] == {**settings, "kind": "command"}
    assert (refused.status_code, refused.json()["error"]) == (400, "INVALID_SETTINGS")
    assert moved.json()["data"]["agent_settings"] == {
        **settings,
        "kind": "command",
        "sandbox": "process",
    }


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"folder": "../etc"}, 400),
        ({"folder": "global"}, 400),
        ({"folder": "MAIN"}, 409),
        ({"chat": "web:main"}, 409),
        ({"chat": "nowhere:1"}, 400),
        ({"name": ""}, 400),
        ({"naem": "typo"}, 400),
        ({"trigger": "("}, 400),
        ({"is_main": "perhaps"}, 400),
        ({"name": "half \ud800"}, 400),
    ],
)
async def test_a_group_that_cannot_be_is_refused(
    front: Front, change: dict[str, str], status: int
) -> None:
    await front.register()
    async with front.client() as operator:
        body = json.dumps({**FAMILY, **change})  # a half character as JSON can spell it
        headers = {"content-type": "application/json"}
        answer = await operator.post("/api/groups", content=body, headers=headers)
        assert answer.status_code == status
        assert (await operator.get("/api/groups")).json()["count"] == 1


async def test_the_main_flag_moves_and_its_group_cannot_be_removed(front: Front) -> None:
    await front.register(is_main=True)
    async with front.client() as operator:
        await operator.post("/api/groups", json={**FAMILY, "is_main": True})
        former = (await operator.get("/api/groups/main")).json()["data"]
        refused = await operator.delete("/api/groups/family")
    assert former["is_main"] is False
    assert (refused.status_code, refused.json()["error"]) == (409, "CONFLICT")


async def test_files_go_only_when_asked_for(front: Front) -> None:
    async with front.client() as operator:
        await operator.post("/api/groups", json=FAMILY)
        assert (await operator.delete("/api/groups/FAMILY?purge=true")).status_code == 204
        assert (await operator.delete("/api/groups/family?purge=true")).status_code == 404
    assert front.evicted == [FAMILY["chat"]]


async def test_a_token_is_shown_once_and_stored_hashed(front: Front) -> None:
    body = {"role": "consumer_app", "subject": "alice", "chat": MAIN, "expires": "30d"}
    async with front.client() as operator:
        made = await operator.post("/api/tokens", json=body)
        listed = await operator.get("/api/tokens")
    data = made.json()["data"]
    assert made.status_code == 201
    assert data["token"].startswith("hp_")
    assert data["token"] not in listed.text
    (row,) = listed.json()["data"]
    assert row["id"] == data["id"]
    assert (row["subject"], row["role"], row["chat"]) == ("alice", "consumer_app", MAIN)
    assert row["expires"] == data["expires"] == "2026-03-21T10:00:00Z"
    assert listed.json()["count"] == 1


async def test_a_token_is_revoked_at_once_and_twice_is_no_harm(front: Front) -> None:
    secret = await front.token("studio_operator", chat=None)
    async with front.client() as operator, front.client(secret) as other:
        assert (await other.get("/api/groups")).status_code == 200
        (row,) = (await operator.get("/api/tokens")).json()["data"]
        assert (await operator.delete(f"/api/tokens/{row['id']}")).status_code == 204
        assert (await operator.delete(f"/api/tokens/{row['id']}")).status_code == 204
        assert (await other.get("/api/groups")).status_code == 401
        assert (await operator.delete("/api/tokens/nothing")).status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"role": "king"},
        {"subject": " "},
        {"expires": "soon"},
        {"expires": "0d"},
        {"expires": "999999999w"},
        {"expires": "-1d"},
    ],
)
async def test_a_token_that_cannot_be_is_refused(front: Front, change: dict[str, str]) -> None:
    body = {"role": "consumer_app", "subject": "alice", **change}
    async with front.client() as operator:
        answer = await operator.post("/api/tokens", json=body)
    assert answer.status_code == 400
    assert answer.json()["details"][0]["field"] == next(iter(change))


async def test_alive_is_open_to_everyone(front: Front) -> None:
    async with front.client("") as stranger:
        assert (await stranger.get("/healthz")).json() == {"status": "ok"}
        assert (await stranger.get("/health")).json() == {"status": "ok", "version": "9.9.9"}


async def test_not_ready_says_why(front: Front) -> None:
    await front.web.disconnect()
    async with front.client("") as stranger:
        answer = await stranger.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"] == "NOT_READY"
    assert answer.json()["reasons"] == [
        "channel web: not connected",
        "engine: the engine is not running",
    ]


async def never(chat: ChatId, signals: Signals) -> None:
    await asyncio.Event().wait()


async def test_ready_when_everything_works(front: Front) -> None:
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(front.engine.serve(never))
        while not front.engine.health().ok:  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0)
        async with front.client("") as stranger:
            answer = await stranger.get("/readyz")
        serving.cancel()
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_a_store_that_is_away_is_not_ready(front: Front) -> None:
    async with front.client("") as stranger:
        await front.store.close()
        answer = await stranger.get("/readyz")
        assert (await stranger.get("/healthz")).status_code == 200
    assert answer.status_code == 503
    assert "store" in answer.json()["message"]


async def test_a_store_that_takes_no_writes_is_not_ready(front: Front) -> None:
    async def full() -> None:
        raise DiskError("the database did not take the write: the disk is full")

    front.desk.status._check_store = full
    async with front.client("") as stranger:
        answer = await stranger.get("/readyz")
    assert answer.status_code == 503
    reason = "store: the database did not take the write: the disk is full"
    assert reason in answer.json()["reasons"]


async def test_status_tells_what_runs_waits_and_failed(front: Front) -> None:
    await front.register()
    await front.say("hello")
    opened = await front.open_turn()
    front.clock.advance(timedelta(seconds=2))
    await front.store.write(
        lambda tx: front.clerk.fail(tx, opened.turn, "it fell over", is_refusal=False)
    )
    front.residents.agents.append(
        LiveAgentInfo(id="a_1", folder="main", state="warm", since=front.clock.now(), pid=7)
    )
    async with front.client() as operator:
        status = (await operator.get("/api/status")).json()["data"]
        channels = (await operator.get("/api/channels")).json()
    assert status["version"] == "9.9.9"
    assert status["is_ready"] is False
    assert status["groups"] == 1
    assert status["messages"] == {"failed": 1}
    assert status["failures"][0]["why"] == "it fell over"
    (trouble,) = status["troubles"]
    assert (trouble["why"], trouble["count"], trouble["chats"]) == ("it fell over", 1, ["web:main"])
    assert (status["agents"][0]["age"], status["agents"][0]["memory"]) == (0.0, 64 << 20)
    assert status["storage"]["errors"] == 1
    assert status["storage"]["free"] == 1 << 30
    assert status["agents"][0]["folder"] == "main"
    assert status["engine"]["waiting"] == 1
    assert channels["data"] == [{"name": "web", "ok": True, "why": ""}]
    assert channels["count"] == 1


async def test_figures_count_what_happened(front: Front) -> None:
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        tasks.create_task(front.desk.metrics.follow(front.feed))
        await asyncio.sleep(0)
        await front.register()
        await front.say("hello")
        opened = await front.open_turn()
        await front.answer(opened, "good day")
        await front.say("and now?")
        front.feed.publish(Lagged())
        front.feed.close()
    async with front.client("") as stranger:
        page = (await stranger.get("/metrics")).text
    for line in (
        'hallporter_messages_total{by="people"} 2.0',
        'hallporter_messages_total{by="us"} 1.0',
        'hallporter_turns_total{outcome="answered"} 1.0',
        "hallporter_turn_wait_seconds_count 1.0",
        "hallporter_turn_duration_seconds_count 1.0",
        "hallporter_queue_depth",
        "hallporter_oldest_wait_seconds",
        'hallporter_outbox{state="pending"} 1.0',
        'hallporter_open_messages{state="queued"} 1.0',
        "hallporter_feed_lagged_total 1.0",
        "hallporter_groups 1.0",
    ):
        assert line in page


async def test_figures_are_for_this_machine_only(front: Front) -> None:
    async with front.client("") as stranger:
        assert (await stranger.get("/metrics")).status_code == 200
        forwarded = await stranger.get("/metrics", headers={"x-forwarded-for": "127.0.0.1"})
        assert forwarded.status_code == 404


async def test_the_manual_needs_nothing_from_elsewhere(front: Front) -> None:
    async with front.client("") as stranger:
        page = await stranger.get("/docs")
        description = (await stranger.get("/openapi.json")).json()
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http://" not in page.text
    assert "https://" not in page.text
    for path in description["paths"]:
        assert path in page.text
    assert "<p>Alive?</p>" in page.text
    assert "?." not in page.text


async def test_every_endpoint_is_described(front: Front) -> None:
    description = front.app.openapi()
    for path, methods in description["paths"].items():
        for operation in methods.values():
            assert operation["summary"]
            assert "422" not in operation["responses"]
            assert path.startswith("/api/") == bool(operation.get("security"))


async def test_the_doctor_looks_and_mends_for_operators_only(front: Front) -> None:
    async with front.client() as operator:
        looked = (await operator.get("/api/doctor")).json()["data"]
        mended = (await operator.post("/api/doctor")).json()["data"]
    async with front.client(await front.token()) as consumer:
        assert (await consumer.get("/api/doctor")).status_code == 404
        assert (await consumer.post("/api/doctor")).status_code == 404
    assert looked["is_well"] is False
    assert looked["findings"] == [
        {
            "about": "home",
            "level": "problem",
            "what": ".env is open",
            "do": "close it",
            "can_fix": True,
            "mended": "",
        }
    ]
    assert mended["is_well"] is True
