"""How much of a backlog goes into one prompt."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter.domain.backlog import MAX_BYTES, MAX_MESSAGES, cap
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.message import Kind, Message, State


def messages(texts: list[str]) -> list[Message]:
    return [
        Message(
            id=MessageId(f"m_{seq}"),
            chat=ChatId("fake:family"),
            seq=seq,
            ext_id=str(seq),
            sender="ada",
            sender_name="Ada",
            text=text,
            at=datetime(2026, 2, 19, tzinfo=UTC),
            kind=Kind.TEXT,
            state=State.QUEUED,
        )
        for seq, text in enumerate(texts, 1)
    ]


SIZES = st.lists(st.integers(0, 60_000), max_size=MAX_MESSAGES + 50)


@pytest.mark.rule("R16")
@given(SIZES)
def test_the_newest_that_fit_are_kept_in_order_and_none_is_missing(sizes: list[int]) -> None:
    backlog = messages(["x" * size for size in sizes])

    capped = cap(backlog)

    assert [*capped.omitted, *capped.kept] == backlog
    assert len(capped.kept) <= MAX_MESSAGES
    size = sum(len(message.text) for message in capped.kept)
    assert size <= MAX_BYTES or len(capped.kept) == 1
    if capped.omitted:
        # One more would have been too much.
        one_more = size + len(capped.omitted[-1].text)
        assert one_more > MAX_BYTES or len(capped.kept) == MAX_MESSAGES


@pytest.mark.rule("R16")
def test_the_newest_message_goes_in_however_long_it_is() -> None:
    backlog = messages(["before", "x" * (MAX_BYTES + 1)])

    assert cap(backlog).kept == (backlog[1],)


def test_bytes_count_and_not_characters() -> None:
    backlog = messages(["天" * (MAX_BYTES // 3)] * 2)

    assert cap(backlog).kept == (backlog[1],)


def test_nothing_stays_nothing() -> None:
    assert cap([]).kept == ()
