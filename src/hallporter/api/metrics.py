"""Figures for Prometheus: what happened is counted as it is told, what stands is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from hallporter.domain.happening import Delivered, Lagged, MessageStored, TurnChanged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hallporter.domain.happening import Happening
    from hallporter.ports import Feed
    from hallporter.switchboard.status import Report

_WAITS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)  # seconds
_DURATIONS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)  # seconds


class Metrics:
    """A registry of its own, so that two hosts in one process do not count together."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self._messages = Counter(
            "hallporter_messages", "Messages stored.", ["by"], registry=registry
        )
        self._turns = Counter("hallporter_turns", "Turns ended.", ["outcome"], registry=registry)
        self._deliveries = Counter(
            "hallporter_deliveries", "Replies that reached their end.", ["state"], registry=registry
        )
        self._missed = Counter(
            "hallporter_feed_lagged",
            "Times that news came too fast to be counted.",
            registry=registry,
        )
        self._wait = Histogram(
            "hallporter_turn_wait_seconds",
            "From the wake-up of a chat to its turn.",
            buckets=_WAITS,
            registry=registry,
        )
        self._duration = Histogram(
            "hallporter_turn_duration_seconds",
            "From the start of a turn to its end.",
            buckets=_DURATIONS,
            registry=registry,
        )
        self._queue = Gauge("hallporter_queue_depth", "Chats that wait.", registry=registry)
        self._running = Gauge("hallporter_turns_running", "Turns that run.", registry=registry)
        self._oldest = Gauge(
            "hallporter_oldest_wait_seconds", "The longest present wait.", registry=registry
        )
        self._open = Gauge(
            "hallporter_open_messages",
            "People's messages without an end.",
            ["state"],
            registry=registry,
        )
        self._outbox = Gauge("hallporter_outbox", "Rows by state.", ["state"], registry=registry)
        self._agents = Gauge("hallporter_agents", "Live agents.", ["state"], registry=registry)
        self._groups = Gauge("hallporter_groups", "Registered groups.", registry=registry)

    async def follow(self, feed: Feed) -> None:
        """Count what happens until the feed ends; wiring runs this beside the server."""
        async with feed.subscribe(None) as events:
            async for event in events:
                self._count(event)

    def exposition(self, report: Report) -> tuple[bytes, str]:
        """The page, and its media type."""
        engine = report.engine
        self._queue.set(engine.waiting)
        self._running.set(engine.running)
        oldest = engine.oldest_wait
        self._oldest.set(0 if oldest is None else oldest.total_seconds())
        self._groups.set(report.groups)
        _show(self._open, report.messages)
        _show(self._outbox, report.outbox)
        live: dict[str, int] = {}
        for agent in report.agents:
            live[agent.state] = live.get(agent.state, 0) + 1
        _show(self._agents, live)
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def _count(self, event: Happening) -> None:
        match event:
            case MessageStored(is_bot=is_bot):
                self._messages.labels("us" if is_bot else "people").inc()
            case TurnChanged(state="started", waited=waited):
                if waited is not None:
                    self._wait.observe(waited.total_seconds())
            case TurnChanged(state=state, took=took):
                self._turns.labels(state).inc()
                if took is not None:
                    self._duration.observe(took.total_seconds())
            case Delivered(state=state):
                self._deliveries.labels(state).inc()
            case Lagged():
                self._missed.inc()
            case _:
                pass


def _show(gauge: Gauge, counts: Mapping[str, int]) -> None:
    gauge.clear()  # a state that nothing is in any more must not keep its last figure
    for state, count in counts.items():
        gauge.labels(state).set(count)
