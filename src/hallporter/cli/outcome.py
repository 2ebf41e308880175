"""What a fate means for someone who waits for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallporter.cli import screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HOPELESS = {
    "ignored": "the message was ignored",
    "unregistered": "the chat is not registered",
    "waiting": "the message waits for a trigger: nobody was asked to answer it",
    "omitted": "the message was left out: too many waited at once",
    "stopped": "the answer was stopped",
    "failed": "the turn failed; the chat's next message tries again",
    "gave_up": "the agent failed again and again, and the host gave up",
}


@dataclass(frozen=True, slots=True)
class Pending:
    """Nothing is settled yet; `why` tells of a failure that will be tried again."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """There is something to read, said in this turn."""

    turn: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """The host itself has answered."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The agent chose to say nothing."""


@dataclass(frozen=True, slots=True)
class Hopeless:
    """No answer will come by itself."""

    why: str


Outcome = Pending | Answered | Noticed | Silent | Hopeless


def outcome(fate: Mapping[str, Any]) -> Outcome:
    """A message may be covered while its turn still talks: only the turn's end settles it."""
    state = fate["state"]
    turn = fate.get("turn") or {}
    if state == "command":
        return Noticed()
    why = turn.get("why") or next(
        (step["why"] for step in reversed(fate["steps"]) if step.get("why")), ""
    )
    if state == "failed" and fate.get("retry_at"):
        return Pending(f"no answer yet ({why}): it is being tried again")
    if state in _HOPELESS:
        return Hopeless(_HOPELESS[state] + (f" ({why})" if why else ""))
    if turn.get("state") == "running":
        return Pending()
    if state == "answered":
        return Answered(turn["id"])
    return Silent() if state == "silent" else Pending()


def replies(messages: Sequence[Mapping[str, Any]], settled: Outcome) -> list[str]:
    """What was said to a message, out of all that came after it."""
    ours = [message for message in messages if message["is_bot"]]
    match settled:
        case Answered(turn=turn):
            return [spoken(message) for message in ours if message.get("turn") == turn]
        case Noticed():
            return [spoken(message) for message in ours if "turn" not in message][:1]
        case _:
            return []


def spoken(message: Mapping[str, Any]) -> str:
    """The words, if any, and the files behind them."""
    return "\n".join([*filter(None, [message["text"]]), *screen.files(message)])
