"""What became of a message, told as steps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hallporter.domain.fate import tell
from hallporter.domain.ids import ChatId, MessageId, TurnId
from hallporter.domain.message import Kind, Message, State
from hallporter.domain.outbox import Delivery, Outgoing
from hallporter.domain.turn import Note, Outcome, Turn, What

CHAT = ChatId("fake:family")
NOW = datetime(2026, 2, 19, 10, 0, tzinfo=UTC)
SAID = Message(
    id=MessageId("m_1"),
    chat=CHAT,
    seq=1,
    ext_id="x1",
    sender="ada",
    sender_name="Ada",
    text="hello",
    at=NOW,
    kind=Kind.TEXT,
    wakes=True,
    why="trigger",
    state=State.ANSWERED,
)
REPLY = replace(
    SAID, id=MessageId("m_2"), seq=2, kind=Kind.REPLY, state=None, turn=TurnId("t_1"), text="hi"
)
TURN = Turn(
    id=TurnId("t_1"),
    chat=CHAT,
    epoch=1,
    attempt=1,
    session_no=0,
    waiting_since=NOW,
    started_at=NOW,
    cursor=0,
    piped=1,
    outcome=Outcome.ANSWERED,
)


def later(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


def note(what: What, seconds: int, *, turn: str = "t_1", why: str = "", through: int = 1) -> Note:
    return Note(turn=TurnId(turn), at=later(seconds), what=what, after=0, through=through, why=why)


def outgoing(state: Delivery, why: str = "") -> Outgoing:
    return Outgoing(
        number=1,
        key="turn:t_1:0",
        chat=CHAT,
        message=REPLY.id,
        at=later(3),
        parts=(),
        state=state,
        why=why,
    )


def steps(message: Message, *notes: Note, turns: tuple[Turn, ...] = (TURN,)) -> list[str]:
    fate = tell(message, turns=turns, notes=notes, replies=(), outgoing=())
    return [step.what for step in fate.steps]


def test_an_answered_message_tells_its_way_in_order() -> None:
    fate = tell(
        SAID,
        turns=[TURN],
        notes=[note(What.GIVEN, 1), note(What.BLOCK, 2)],
        replies=[REPLY],
        outgoing=[outgoing(Delivery.SENT)],
    )

    assert [step.what for step in fate.steps] == [
        "stored",
        "woke the chat",
        "given to the agent in turn t_1",
        "answered",
        "the reply was delivered",
    ]
    assert fate.state == "answered"
    assert fate.replies == (REPLY.id,)
    assert fate.turn == TURN


def test_failed_attempts_are_told_with_their_reason_and_their_number() -> None:
    first = replace(TURN, outcome=Outcome.FAILED, why="overloaded")
    second = replace(TURN, id=TurnId("t_2"), epoch=2, attempt=2)
    told = tell(
        SAID,
        turns=[first, second],
        notes=[
            note(What.GIVEN, 1),
            note(What.ENDED, 2, why="overloaded"),
            note(What.GIVEN, 7, turn="t_2"),
            note(What.BLOCK, 8, turn="t_2"),
        ],
        replies=[],
        outgoing=[],
    )

    assert [(step.what, step.why) for step in told.steps[2:]] == [
        ("given to the agent in turn t_1", ""),
        ("the turn failed", "overloaded"),
        ("given to the agent in turn t_2 (attempt 2)", ""),
        ("answered", ""),
    ]
    assert told.turn == second


def test_notes_about_other_messages_are_not_told() -> None:
    third = replace(SAID, seq=3)

    assert steps(third, note(What.GIVEN, 1)) == ["stored", "woke the chat"]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (State.UNREGISTERED, "not stored: the chat is not registered"),
        (State.IGNORED, "ignored"),
        (State.WAITING, "waits for a trigger"),
        (State.COMMAND, "taken as a command to the host"),
        (State.OMITTED, "left out: too many messages waited at once"),
        (State.GAVE_UP, "given up after repeated failures"),
    ],
)
def test_each_end_without_an_answer_has_its_words(state: State, says: str) -> None:
    assert says in steps(replace(SAID, state=state), turns=())


@pytest.mark.parametrize("state", State)
def test_every_state_can_be_told(state: State) -> None:
    fate = tell(replace(SAID, state=state), turns=[], notes=[], replies=[], outgoing=[])

    assert fate.state == str(state)
    assert fate.steps[0].what == "stored"


def test_a_silent_block_and_a_follow_up_have_their_own_words() -> None:
    assert steps(SAID, note(What.PIPED, 1), note(What.BLOCK, 2, why="silent"))[2:] == [
        "passed into the running turn t_1",
        "the agent said nothing",
    ]


def test_what_was_kept_as_context_says_so() -> None:
    aside = replace(SAID, wakes=False, why="no trigger")

    assert steps(aside)[1] == "kept as context"


@pytest.mark.parametrize("state", Delivery)
def test_our_own_message_has_its_deliverys_state(state: Delivery) -> None:
    told = tell(
        REPLY, turns=[TURN], notes=[], replies=[], outgoing=[outgoing(state, "no such number")]
    )

    assert told.state == str(state)
    assert told.steps[0].what == "written by the agent"
    assert told.steps[1].why == "no such number"


def test_a_notice_is_the_hosts() -> None:
    notice = replace(REPLY, kind=Kind.NOTICE, turn=None)

    told = tell(notice, turns=[], notes=[], replies=[], outgoing=[])

    assert told.steps[0].what == "written by the host"
