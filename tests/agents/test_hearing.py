"""What a program printed becomes blocks: how far they reach, and which of them count."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from hallporter.agents.hearing import Hearing
from hallporter.domain.brief import Block
from hallporter.domain.coverage import Given
from hallporter_wire.blocks import Block as WireBlock
from hallporter_wire.blocks import Malformed

PATIENCE = 5.0  # seconds
NEVER = timedelta(hours=1)  # in which no test ends
FIRST = Given(through=3, file=None)
FILE = Given(through=5, file="000000000001.json")


class Listener:
    """A hearing, the files that lie in its tray, and the blocks that came of it."""

    def __init__(self, *, speaks_through: bool = False, doubt: timedelta = NEVER) -> None:
        self.lying: set[str] = set()
        self.blocks: list[Block] = []
        self.emitted = asyncio.Event()
        self.hearing = Hearing(
            first=FIRST,
            speaks_through=speaks_through,
            is_lying=self.lying.__contains__,
            emit=self._emit,
            doubt=doubt,
        )

    def _emit(self, block: Block) -> None:
        self.blocks.append(block)
        self.emitted.set()

    def hear(
        self,
        result: str | None,
        *,
        session_id: str | None = None,
        through: int | None = None,
        idle: bool | None = None,
    ) -> None:
        self.hearing.hear(
            WireBlock(
                status="success", result=result, session_id=session_id, through=through, idle=idle
            )
        )

    def give_file(self) -> None:
        assert FILE.file is not None
        self.lying.add(FILE.file)
        self.hearing.expect(FILE)

    def heard(self) -> list[tuple[str | None, int, bool]]:
        return [(block.text, block.through, block.idle) for block in self.blocks]

    def answer_then_hold_a_null(self) -> None:
        """One text for stdin, then a file that is taken up, then a null in doubt."""
        self.hear("one")
        self.give_file()
        self.lying.clear()
        self.hear(None)
        assert self.heard() == [("one", 3, True)]


# --- a null in doubt ------------------------------------------------------------------------------


@pytest.mark.rule("R3")
async def test_a_null_in_doubt_counts_after_a_clean_end() -> None:
    listener = Listener()
    listener.answer_then_hold_a_null()

    listener.hearing.end(0)

    assert listener.heard() == [("one", 3, True), (None, 5, True)]


@pytest.mark.rule("R3")
@pytest.mark.parametrize("code", [1, 137])
async def test_a_null_in_doubt_does_not_count_after_any_other_end(code: int) -> None:
    listener = Listener()
    listener.answer_then_hold_a_null()

    listener.hearing.end(code)

    assert listener.heard() == [("one", 3, True)]


@pytest.mark.rule("R3")
@pytest.mark.parametrize(
    "next_word",
    [
        pytest.param(WireBlock(status="success", result="two"), id="words"),
        pytest.param(WireBlock(status="error", result=None, error="no model"), id="an error"),
        pytest.param(Malformed(reason="no JSON", excerpt="?"), id="something unreadable"),
    ],
)
async def test_a_null_in_doubt_is_dropped_when_anything_follows(
    next_word: WireBlock | Malformed,
) -> None:
    listener = Listener()
    listener.answer_then_hold_a_null()

    listener.hearing.hear(next_word)
    listener.hearing.end(0)

    assert len(listener.blocks) == 2
    assert listener.blocks[1].text or listener.blocks[1].is_error


@pytest.mark.rule("R3")
async def test_a_null_in_doubt_counts_when_nothing_follows_for_a_while() -> None:
    listener = Listener(doubt=timedelta(0))
    listener.answer_then_hold_a_null()
    listener.emitted.clear()

    async with asyncio.timeout(PATIENCE):
        await listener.emitted.wait()

    assert listener.heard() == [("one", 3, True), (None, 5, True)]
    listener.hearing.end(0)
    assert len(listener.blocks) == 2


@pytest.mark.rule("R3")
async def test_a_null_with_no_text_before_it_is_an_answer_at_once() -> None:
    listener = Listener()

    listener.hear(None)

    assert listener.heard() == [(None, 3, True)]


@pytest.mark.rule("R3")
async def test_a_null_after_a_null_is_an_answer_at_once() -> None:
    listener = Listener()
    listener.hear(None)
    listener.hearing.expect(Given(through=5, file=None))

    listener.hear(None)

    assert listener.heard() == [(None, 3, True), (None, 5, True)]


@pytest.mark.rule("R3")
async def test_a_null_behind_the_last_answer_covers_nothing_new_and_is_not_held() -> None:
    listener = Listener()
    listener.hear("one")

    listener.hear(None)

    assert listener.heard() == [("one", 3, True), (None, 3, True)]


@pytest.mark.rule("R3")
async def test_a_null_before_the_file_is_taken_covers_nothing_and_is_not_held() -> None:
    listener = Listener()
    listener.hear("one")
    listener.give_file()

    listener.hear(None)

    assert listener.heard() == [("one", 3, True), (None, 3, False)]


# --- how far a block reaches ----------------------------------------------------------------------


@pytest.mark.rule("R3")
async def test_while_its_file_lies_untouched_a_block_covers_nothing_new_and_is_not_idle() -> None:
    listener = Listener()
    listener.hear("one")
    listener.give_file()

    listener.hear("one more thing")
    listener.lying.clear()
    listener.hear("two")

    assert listener.heard() == [
        ("one", 3, True),
        ("one more thing", 3, False),
        ("two", 5, True),
    ]


@pytest.mark.rule("R2")
async def test_a_program_that_says_how_far_it_reaches_is_believed() -> None:
    listener = Listener(speaks_through=True)
    listener.give_file()

    listener.hear("working", through=3, idle=False)
    listener.hear("half", through=3)
    listener.hear(None, through=5, idle=True)

    assert listener.heard() == [("working", 3, False), ("half", 3, True), (None, 5, True)]


@pytest.mark.rule("R2")
async def test_a_program_that_should_say_how_far_and_does_not_covers_nothing() -> None:
    listener = Listener(speaks_through=True)

    listener.hear("where was I?")

    assert listener.heard() == [("where was I?", 0, True)]


@pytest.mark.rule("R2")
async def test_a_program_that_once_said_how_far_is_taken_at_its_word_from_then_on() -> None:
    listener = Listener()
    listener.hear("one", through=3)

    listener.hear("by the way")

    assert listener.hearing.speaks_through
    assert listener.heard() == [("one", 3, True), ("by the way", 0, True)]


async def test_what_was_taken_up_is_told_by_the_files_that_are_gone() -> None:
    listener = Listener()
    listener.give_file()
    assert listener.hearing.taken() == 3

    listener.lying.clear()
    assert listener.hearing.taken() == 5

    listener.hearing.forget()
    assert listener.hearing.taken() == 0


# --- what is not passed on ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "is_kept"), [pytest.param(1024, True, id="fits"), pytest.param(1025, False, id="no")]
)
async def test_a_session_id_that_is_too_long_is_dropped_and_its_words_are_kept(
    length: int, *, is_kept: bool
) -> None:
    listener = Listener()
    session_id = "s" * length

    listener.hear("remember me", session_id=session_id)

    (block,) = listener.blocks
    assert (block.text, block.session_id) == ("remember me", session_id if is_kept else None)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (WireBlock(status="error", result=None, error="no model"), "no model"),
        (WireBlock(status="error", result="no key"), "no key"),
        (WireBlock(status="error", result=None), "the agent reported an error"),
        (
            Malformed(reason="no JSON", excerpt="?"),
            "the agent's output could not be read (no JSON)",
        ),
        (WireBlock(status="error", result=None, error="x" * 501), "x" * 500 + "…"),
    ],
    ids=["its error", "its result", "nothing", "malformed", "long"],
)
async def test_an_error_says_why_in_few_words_and_covers_nothing(
    found: WireBlock | Malformed, why: str
) -> None:
    listener = Listener()

    listener.hearing.hear(found)

    (block,) = listener.blocks
    assert (block.is_error, block.error, block.through, block.idle) == (True, why, 0, False)
