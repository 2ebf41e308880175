"""What others were measured to need: our figures of another day, taken with the same harness shape
(stub agent or model, no network, two shared cores), never in our own run."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NANOCLAW = "NanoClaw v1.1.2"
NANOBOT = "nanobot 0.3.5"
NAMES = (NANOCLAW, NANOBOT)


@dataclass(frozen=True, slots=True)
class Published:
    """In the unit of our figure of the same key; None where `note` is all there is."""

    value: float | None
    note: str = ""


PUBLISHED: Mapping[str, Mapping[str, Published]] = MappingProxyType(
    {
        "cold.above": {
            NANOCLAW: Published(1006, "p95 2017; its container runtime was a stub too"),
            NANOBOT: Published(104, "message to model request, new chat; no sandbox"),
        },
        "warm.file": {
            NANOCLAW: Published(621, "p95 1906"),
            NANOBOT: Published(127, "message to model request, same chat; no sandbox"),
        },
        "warm.delivered": {
            NANOCLAW: Published(14, "p95 45"),
            NANOBOT: Published(8.2, "model response to reply at the client"),
        },
        "cold.delivered": {
            NANOCLAW: Published(16, "p95 66"),
            NANOBOT: Published(7.0, "model response to reply at the client"),
        },
        "mail.delivered": {NANOCLAW: Published(505, "p95 945")},
        "answered.rate": {
            NANOBOT: Published(7.0, "16 chats side by side; no sandbox"),
        },
        "burst.time": {
            NANOCLAW: Published(None, "20 of 200 answered, then none for 90 s"),
        },
        "rss.1": {NANOCLAW: Published(133), NANOBOT: Published(120, "it has no groups")},
        "rss.100": {NANOCLAW: Published(138), NANOBOT: Published(120, "it has no groups")},
        "cpu.100": {NANOCLAW: Published(0.5), NANOBOT: Published(0.5)},
        "start": {
            NANOCLAW: Published(0.93, "to its socket"),
            NANOBOT: Published(1.90, "to its port"),
        },
        "restart": {
            NANOCLAW: Published(1.08, "where it answered: 5 of 85 open ones were never answered"),
            NANOBOT: Published(None, "never by itself: 30 of 30"),
        },
    }
)


def published(key: str, peer: str) -> Published | None:
    """What is known of a peer's figure."""
    return PUBLISHED.get(key, {}).get(peer)
