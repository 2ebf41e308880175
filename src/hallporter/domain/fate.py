"""What became of a message, and why: told as steps anyone can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.message import Kind, State
from hallporter.domain.outbox import Delivery
from hallporter.domain.turn import Outcome, What

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hallporter.domain.ids import MessageId
    from hallporter.domain.message import Message
    from hallporter.domain.outbox import Outgoing
    from hallporter.domain.turn import Note, Turn

_WAKES = {
    State.UNREGISTERED: "not stored: the chat is not registered",
    State.IGNORED: "ignored",
    State.WAITING: "waits for a trigger",
    State.COMMAND: "taken as a command to the host",
}

_ENDS = {
    Outcome.FAILED: "the turn failed",
    Outcome.STOPPED: "stopped",
    Outcome.INTERRUPTED: "the host ended during the turn; it runs again",
}

_DELIVERED = {
    Delivery.SENT: "the reply was delivered",
    Delivery.UNDELIVERABLE: "the reply could not be delivered",
    Delivery.PENDING: "the reply waits to be sent",
    Delivery.SENDING: "the reply is being sent",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened to a message."""

    at: datetime
    what: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The whole story; for one of our own messages `state` is its delivery's."""

    message: Message
    state: str
    steps: tuple[Step, ...]
    replies: tuple[MessageId, ...]
    turn: Turn | None
    retry_at: datetime | None = None  # of a failed one that comes again by itself
    said: tuple[Message, ...] = ()  # the replies themselves, and what the host told meanwhile


def held_by(message: Message, turns: Sequence[Turn]) -> Sequence[Turn]:
    """Of the turns that passed a message's place, those whose agent had it: they also pass over
    slash lines and what was stopped or left out before."""
    last = next((turn for turn in turns if turn.id == message.turn), None)
    if last is None:
        return []
    was_left_out = message.state is State.OMITTED
    return [t for t in turns if t.epoch < last.epoch or (t is last and not was_left_out)]


def tell(
    message: Message,
    *,
    turns: Sequence[Turn],
    notes: Sequence[Note],
    replies: Sequence[Message],
    outgoing: Sequence[Outgoing],
    retry_at: datetime | None = None,
) -> Fate:
    """Put the records of one message in order. `turns` are those that were given it, or made it."""
    by_id = {turn.id: turn for turn in turns}
    if message.is_bot:
        return _tell_ours(message, outgoing, by_id.get(message.turn) if message.turn else None)
    steps = [Step(message.at, "stored")]
    if message.state is not None and message.state in _WAKES:
        steps.append(Step(message.at, _WAKES[message.state], message.why))
    elif message.wakes:
        steps.append(Step(message.at, "woke the chat", message.why))
    else:
        steps.append(Step(message.at, "kept as context", message.why))
    steps.extend(
        _from_note(note, by_id[note.turn])
        for note in notes
        if note.after < message.seq <= note.through
    )
    sent = {row.message: row for row in outgoing}
    steps.extend(
        Step(row.at, _DELIVERED[row.state], row.why)
        for reply in replies
        if (row := sent.get(reply.id)) is not None
    )
    steps.sort(key=lambda step: step.at)
    steps.extend(_closing(message, steps[-1].at, retry_at))
    return Fate(
        message=message,
        state=str(message.state),
        steps=tuple(steps),
        replies=tuple(reply.id for reply in replies if reply.kind is Kind.REPLY),
        turn=turns[-1] if turns else None,
        retry_at=retry_at if message.state is State.FAILED else None,
        said=tuple(replies),
    )


def _tell_ours(message: Message, outgoing: Sequence[Outgoing], turn: Turn | None) -> Fate:
    row = next((row for row in outgoing if row.message == message.id), None)
    author = "agent" if turn is not None or message.kind is Kind.REPLY else "host"
    why = message.why
    if turn is not None and turn.task is not None and turn.due is not None:
        due = turn.due.isoformat(timespec="seconds")
        why = f"for the task {turn.task}, due at {due}"
    steps = [Step(message.at, f"written by the {author}", why)]
    state = str(Delivery.SENT)
    if row is not None:
        state = str(row.state)
        steps.append(Step(row.at, _DELIVERED[row.state], row.why))
    return Fate(message=message, state=state, steps=tuple(steps), replies=(), turn=turn)


def _from_note(note: Note, turn: Turn) -> Step:
    attempt = f" (attempt {turn.attempt})" if turn.attempt > 1 else ""
    match note.what:
        case What.GIVEN:
            return Step(note.at, f"given to the agent in turn {turn.id}{attempt}", note.why)
        case What.PIPED:
            return Step(note.at, f"passed into the running turn {turn.id}", note.why)
        case What.BLOCK:
            return Step(note.at, "answered" if note.why != "silent" else "the agent said nothing")
        case What.ENDED:
            outcome = turn.outcome
            text = _ENDS.get(outcome, "the turn ended") if outcome else "the turn ended"
            return Step(note.at, text, note.why)


def _closing(message: Message, last: datetime, retry_at: datetime | None) -> list[Step]:
    # What no note of a turn says: how it stands between turns.
    match message.state:
        case State.OMITTED:
            return [Step(last, "left out: too many messages waited at once")]
        case State.GAVE_UP:
            return [Step(last, "given up after repeated failures")]
        case State.FAILED if retry_at is not None:
            return [Step(retry_at, "will be tried again")]
        case State.FAILED:
            return [Step(last, "waits for the chat's next message, which tries again")]
        case _:
            return []
