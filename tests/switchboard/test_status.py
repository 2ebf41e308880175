from __future__ import annotations

from datetime import datetime, timedelta

from hallporter.domain.ids import ChatId, TurnId
from hallporter.domain.turn import Outcome, Turn
from hallporter.ports import EngineHealth, Health
from hallporter.switchboard.status import Report
from tests.fakes.clock import FakeClock

NOW = FakeClock().now()


def failed(why: str, *, chat: str = "web:main", ended: datetime | None = None) -> Turn:
    return Turn(
        id=TurnId("t_1"),
        chat=ChatId(chat),
        epoch=1,
        attempt=1,
        session_no=1,
        waiting_since=NOW,
        started_at=NOW,
        cursor=0,
        piped=1,
        ended_at=ended,
        outcome=Outcome.FAILED,
        why=why,
    )


def report(*failures: Turn) -> Report:
    return Report(
        channels={},
        engine=EngineHealth(ok=True, why="", waiting=0, running=0, oldest_wait=None, pools={}),
        agents=(),
        sandboxes=(),
        messages={},
        outbox={},
        failures=failures,
        notices=(),
        groups=1,
        tasks={},
        next_tick=None,
        store=Health(ok=True),
    )


def test_failures_are_counted_by_their_reason() -> None:
    later = NOW + timedelta(minutes=3)
    often, once = report(
        failed("it fell over", chat="web:b", ended=later),
        failed("no model"),
        failed("it fell over", chat="web:a", ended=NOW),
        failed("it fell over", chat="web:a", ended=NOW),
    ).troubles
    assert (often.why, often.count, often.last) == ("it fell over", 3, later)
    assert often.chats == ["web:a", "web:b"]
    assert (once.why, once.count, once.last) == ("no model", 1, NOW)


def test_without_failures_there_is_no_trouble() -> None:
    assert report().troubles == []
