"""The rules of a turn (R1 to R16), each by name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.domain.backlog import MAX_MESSAGES
from hallporter.domain.brief import LateBlock
from hallporter.domain.errors import AgentFailedError, AgentRefusedError
from hallporter.domain.ids import AgentId, ChatId
from hallporter.domain.ladder import MAX_INTERRUPTIONS, RUNGS
from tests.fakes.clock import FakeClock
from tests.switchboard.house import CHAT, House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        await opened.register()
        yield opened


async def use_up_the_ladder(house: House, *, first: int = 1) -> int:
    """Let every attempt fail; how many seats were used so far."""
    for rung in range(len(RUNGS) + 1):
        seat = await house.agent.seated(first + rung)
        seat.fail("the model is away")
        await house.agent.over(seat)
        await house.idle()
        if rung < len(RUNGS):
            house.clock.advance(RUNGS[rung])
    return first + len(RUNGS)


@pytest.mark.rule("R1")
async def test_the_cursor_moves_only_with_a_success_block_and_only_as_far_as_it_reaches(
    house: House,
) -> None:
    first = await house.hear("one")
    seat = await house.agent.seated()
    second = await house.hear("two")
    await seat.wait_fed()
    assert (await house.chat()).cursor == 0

    seat.say("to one", through=first.seq, idle=False)
    await house.settled(first, "answered")

    chat = await house.chat()
    assert chat.cursor == first.seq
    assert await house.state(second) == "running"
    assert chat.head >= second.seq >= chat.cursor


@pytest.mark.rule("R1")
async def test_what_was_piped_but_not_covered_comes_again_after_a_death(house: House) -> None:
    first = await house.hear("one")
    seat = await house.agent.seated()
    second = await house.hear("two")
    await seat.wait_fed()
    seat.say("to one", through=first.seq, idle=False)
    await house.settled(first, "answered")
    seat.leave(137)
    await house.agent.over(seat)
    await house.idle()
    house.clock.advance(RUNGS[0])

    again = await house.agent.seated(2)

    assert again.texts() == ["two"]
    again.say("to two")
    assert (await house.settled(second, "answered")).replies


@pytest.mark.rule("R2")
async def test_one_result_that_answers_two_batches_has_the_higher_through(house: House) -> None:
    first = await house.hear("one")
    seat = await house.agent.seated()
    second = await house.hear("two")
    await seat.wait_fed()

    seat.say("to both", through=second.seq)

    answered = [await house.settled(message, "answered") for message in (first, second)]
    assert answered[0].replies == answered[1].replies
    assert await house.replies() == ["to both"]


@pytest.mark.rule("R3")
async def test_a_through_beyond_what_was_piped_counts_as_piped(house: House) -> None:
    message = await house.hear("one")
    seat = await house.agent.seated()

    seat.say("hello", through=999_999)

    await house.settled(message, "answered")
    assert (await house.chat()).cursor == message.seq


@pytest.mark.rule("R3")
async def test_a_program_that_takes_no_more_gets_the_follow_up_in_the_next_turn(
    house: House,
) -> None:
    house.agent.takes_more = False
    first = await house.hear("one")
    seat = await house.agent.seated()
    second = await house.hear("two")

    seat.say("to one", through=first.seq)
    again = await house.agent.seated(2)

    assert seat.fed == []
    assert again.texts() == ["two"]
    again.say("to two")
    await house.settled(second, "answered")


@pytest.mark.rule("R4")
async def test_a_turn_goes_on_until_a_block_covers_all_and_is_idle(house: House) -> None:
    message = await house.hear("one")
    seat = await house.agent.seated()
    seat.say("first part", idle=False)
    await house.settled(message, "answered")
    assert not seat.is_over

    seat.say("second part", idle=True)

    await house.agent.over(seat)
    assert await house.replies() == ["first part", "second part"]
    assert len((await house.fate(message)).replies) == 2


@pytest.mark.rule("R4")
async def test_the_end_of_a_turn_looks_at_the_backlog_again(house: House) -> None:
    house.agent.takes_more = False
    await house.hear("one")
    seat = await house.agent.seated()
    for text in ("two", "three"):
        await house.hear(text)

    seat.say("to one", through=1)

    assert (await house.agent.seated(2)).texts() == ["two", "three"]


@pytest.mark.rule("R5")
@pytest.mark.parametrize("nothing", [None, "", "  \n", "<internal>hm</internal>"])
async def test_a_success_without_words_moves_the_cursor_and_is_silent(
    house: House, nothing: str | None
) -> None:
    message = await house.hear("one")
    seat = await house.agent.seated()

    seat.say(nothing)

    await house.settled(message, "silent")
    assert (await house.chat()).cursor == message.seq
    assert await house.replies() == []


@pytest.mark.rule("R5")
async def test_an_exit_without_any_success_is_a_failure(house: House) -> None:
    message = await house.hear("one")
    seat = await house.agent.seated()

    seat.leave(0)

    fate = await house.settled(message, "failed")
    assert any("ended" in step.why for step in fate.steps)


@pytest.mark.rule("R5")
async def test_an_exit_behind_a_success_with_files_left_lying_is_a_new_turn_at_once(
    house: House,
) -> None:
    first = await house.hear("one")
    seat = await house.agent.seated()
    second = await house.hear("two")
    await seat.wait_fed()
    seat.say("to one", through=first.seq, idle=True)

    seat.leave(0, taken=first.seq)
    again = await house.agent.seated(2)

    assert again.texts() == ["two"]
    assert again.brief.attempt == 1
    again.say("to two")
    await house.settled(second, "answered")


@pytest.mark.rule("R5")
async def test_failure_after_output_keeps_what_is_covered_and_replays_the_rest(
    house: House,
) -> None:
    first = await house.hear("one")
    seat = await house.agent.seated()
    second = await house.hear("two")
    await seat.wait_fed()
    seat.say("to one", through=first.seq, idle=False)
    seat.fail("overloaded")
    await house.settled(second, "failed")
    await house.idle()
    house.clock.advance(RUNGS[0])

    again = await house.agent.seated(2)

    assert again.texts() == ["two"]
    assert await house.state(first) == "answered"
    again.say("to two")
    await house.settled(second, "answered")
    assert await house.replies() == ["to one", "to two"]


@pytest.mark.requirement("queue.running.follow-up-is-piped")
@pytest.mark.rule("R6")
async def test_only_messages_that_wake_the_chat_are_piped_and_the_others_ride_along(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path) as house:
        await house.register(trigger="@Andy")
        aside = await house.hear("just talking")
        assert await house.state(aside) == "waiting"
        await house.hear("@Andy one")
        seat = await house.agent.seated()
        assert seat.texts() == ["just talking", "@Andy one"]

        later = await house.hear("talking on")
        await house.hear("@Andy two")
        batch = await seat.wait_fed()

        assert [line.text for line in batch.lines] == ["talking on", "@Andy two"]
        seat.say("to all")
        await house.settled(later, "answered")
        await house.settled(aside, "answered")


@pytest.mark.rule("R6")
@pytest.mark.parametrize("ending", ["failure", "exit"])
async def test_a_rider_whose_waker_has_its_answer_waits_for_the_next_one(
    tmp_path: Path, ending: str
) -> None:
    async with open_house(tmp_path) as house:
        await house.register(trigger="@Andy")
        house.agent.takes_more = False
        await house.hear("@Andy one")
        first = await house.agent.seated()
        asked = await house.hear("@Andy two")
        aside = await house.hear("just talking")
        first.say("to one")
        seat = await house.agent.seated(2)
        assert seat.texts() == ["@Andy two", "just talking"]

        seat.say("to two", through=seat.given - 1, idle=False)
        if ending == "failure":
            seat.fail("no more")
            await house.agent.over(seat)
            await house.idle()
            house.clock.advance(RUNGS[0])
        else:
            seat.leave(taken=seat.given - 1)
            await house.agent.over(seat)
        await house.idle()

        assert await house.state(aside) == "waiting"
        assert await house.state(asked) == "answered"
        await house.hear("@Andy three")
        assert (await house.agent.seated(3)).texts() == ["just talking", "@Andy three"]


@pytest.mark.rule("R7")
async def test_a_chat_never_has_two_turns_at_once(house: House) -> None:
    await house.hear("one")
    seat = await house.agent.seated()
    for number in range(20):
        await house.hear(f"more {number}")
    await seat.wait_fed()

    assert house.agent.most_live == 1
    assert len(house.agent.seats) == 1


@pytest.mark.rule("R10")
async def test_stop_ends_the_turn_in_one_transaction_and_nothing_is_tried_again(
    house: House,
) -> None:
    message = await house.hear("a long story please")
    seat = await house.agent.seated()
    before = (await house.chat()).epoch

    line = await house.hear("/stop")

    assert await house.state(message) == "stopped"
    assert await house.state(line) == "command"
    chat = await house.chat()
    assert chat.cursor == message.seq
    assert chat.epoch == before + 1
    await house.agent.over(seat)
    assert seat.is_stopped
    await house.idle()
    house.clock.advance(sum(RUNGS, timedelta(0)))
    assert len(house.agent.seats) == 1
    assert await house.replies() == ["Stopped."]


@pytest.mark.rule("R10")
async def test_what_a_stopped_agent_still_says_is_fenced_out(house: House) -> None:
    await house.hear("one")
    seat = await house.agent.seated()
    await house.hear("/stop")
    seat.say("too late")

    await house.agent.over(seat)

    assert await house.replies() == ["Stopped."]


@pytest.mark.rule("R10")
async def test_replies_committed_before_stop_still_go_out(house: House) -> None:
    message = await house.hear("one")
    seat = await house.agent.seated()
    house.channel.is_down = True
    seat.say("first part", idle=False)
    await house.settled(message, "answered")
    await house.hear("/stop")
    await house.agent.over(seat)
    house.channel.is_down = False
    house.clock.advance(timedelta(minutes=2))

    await house.until(lambda: len(house.channel.sent) == 2)

    assert [body for _, body, _ in house.channel.sent] == ["first part", "Stopped."]


@pytest.mark.rule("R10")
async def test_slash_lines_are_never_in_a_prompt(house: House) -> None:
    await house.hear("/help")
    await house.hear("/whoami")
    await house.hear("hello")

    assert (await house.agent.seated()).texts() == ["hello"]


@pytest.mark.rule("R10")
async def test_stop_also_drops_what_waits_for_its_turn(tmp_path: Path) -> None:
    async with open_house(tmp_path, slots=1) as house:
        other = ChatId("fake:other")
        await house.register()
        await house.register(other)
        await house.hear("busy", other)
        seat = await house.agent.seated()
        waiting = await house.hear("one")

        await house.hear("/stop")

        assert await house.state(waiting) == "stopped"
        seat.say("done")
        await house.agent.over(seat)
        await house.idle()
        assert len(house.agent.seats) == 1


@pytest.mark.rule("R11")
async def test_new_begins_a_session_that_the_running_turn_cannot_overwrite(house: House) -> None:
    await house.hear("one")
    seat = await house.agent.seated()
    seat.say("hi", idle=False, session="old")
    await house.hear("/new")
    assert (await house.chat()).session_id is None

    seat.say("bye", session="old again")
    await house.agent.over(seat)

    assert (await house.chat()).session_id is None
    assert seat.is_dismissed
    assert house.agent.forgotten == [CHAT]


@pytest.mark.rule("R11")
async def test_a_session_id_is_kept_for_the_next_turn(house: House) -> None:
    message = await house.hear("one")
    (await house.agent.seated()).say("hi", session="s1")
    await house.settled(message, "answered")
    await house.hear("two")

    assert (await house.agent.seated(2)).brief.session_id == "s1"


@pytest.mark.rule("R14")
async def test_the_ladder_tries_five_times_more_then_parks_and_tells_the_chat(
    house: House,
) -> None:
    message = await house.hear("one")
    await use_up_the_ladder(house)

    await house.settled(message, "failed")

    assert (await house.chat()).is_parked
    assert "Your next message tries again." in (await house.replies())[-1]
    assert [seat.brief.attempt for seat in house.agent.seats] == [1, 2, 3, 4, 5, 6]


@pytest.mark.rule("R14")
async def test_the_next_message_retries_all_of_it_and_a_second_ladder_gives_up(
    house: House,
) -> None:
    first = await house.hear("one")
    used = await use_up_the_ladder(house)
    second = await house.hear("two")
    seat = await house.agent.seated(used + 1)
    assert seat.texts() == ["one", "two"]

    await use_up_the_ladder(house, first=used + 1)

    for message in (first, second):
        await house.settled(message, "gave_up")
    chat = await house.chat()
    assert chat.cursor == second.seq
    assert not chat.is_parked
    assert "given up" in (await house.replies())[-1]


@pytest.mark.rule("R14")
async def test_the_chat_hears_in_between_that_we_are_still_trying(house: House) -> None:
    await house.hear("one")
    for attempt in (1, 2):
        seat = await house.agent.seated(attempt)
        seat.fail("overloaded")
        await house.agent.over(seat)
        await house.idle()
        house.clock.advance(RUNGS[attempt - 1])

    (await house.agent.seated(3)).say("here I am")

    await house.until(lambda: len(house.channel.sent) == 2)
    assert await house.replies() == [
        "I have no answer yet: overloaded. I am trying again.",
        "here I am",
    ]


@pytest.mark.rule("R14")
async def test_a_refusal_is_told_at_once_without_a_ladder(house: House) -> None:
    house.agent.trouble = AgentRefusedError("there is no program /srv/agent.py")
    message = await house.hear("one")

    await house.settled(message, "failed")

    assert len(house.agent.seats) == 1
    assert "there is no program /srv/agent.py" in (await house.replies())[0]


@pytest.mark.rule("R14")
async def test_an_agent_that_cannot_be_started_takes_the_ladder(house: House) -> None:
    house.agent.trouble = AgentFailedError("no memory")
    message = await house.hear("one")
    await house.settled(message, "failed")
    await house.idle()
    house.agent.trouble = None
    house.clock.advance(RUNGS[0])

    (await house.agent.seated(2)).say("now")

    await house.settled(message, "answered")


@pytest.mark.rule("R14")
async def test_an_unexpected_error_takes_the_ladder_too(house: House) -> None:
    house.agent.trouble = ZeroDivisionError()
    message = await house.hear("one")

    fate = await house.settled(message, "failed")

    assert any("ZeroDivisionError" in step.why for step in fate.steps)


@pytest.mark.rule("R14")
async def test_a_new_message_does_not_hurry_the_ladder(house: House) -> None:
    await house.hear("one")
    seat = await house.agent.seated()
    seat.fail("overloaded")
    await house.agent.over(seat)
    await house.idle()

    await house.hear("hello?")
    await house.idle()
    assert len(house.agent.seats) == 1

    house.clock.advance(RUNGS[0])
    assert (await house.agent.seated(2)).texts() == ["one", "hello?"]


@pytest.mark.rule("R14")
async def test_a_turn_cut_short_by_the_hosts_end_is_no_attempt_and_runs_again_at_once(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        message = await house.hear("one")
        await house.agent.seated()

    async with open_house(tmp_path, clock=clock) as house:
        seat = await house.agent.seated()
        assert seat.brief.attempt == 1
        seat.say("here I am")
        fate = await house.settled(message, "answered")

    assert any("the host ended" in step.what for step in fate.steps)


@pytest.mark.rule("R14")
async def test_ten_turns_cut_short_in_a_row_park_the_chat(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_house(tmp_path, clock=clock) as house:
        await house.register()
        message = await house.hear("the message that takes the host down")
        await house.agent.seated()
    for _ in range(MAX_INTERRUPTIONS - 1):
        async with open_house(tmp_path, clock=clock) as house:
            await house.agent.seated()

    async with open_house(tmp_path, clock=clock) as house:
        await house.settled(message, "failed")
        assert "the host ended each time" in (await house.replies())[0]
        await house.idle()
        assert house.agent.seats == []

        await house.hear("try again")
        seat = await house.agent.seated()
        assert seat.texts() == ["the message that takes the host down", "try again"]


@pytest.mark.rule("R15")
async def test_no_more_turns_run_than_there_are_slots_and_the_oldest_goes_first(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path, slots=2) as house:
        chats = [ChatId(f"fake:c{number}") for number in range(6)]
        for chat in chats:
            await house.register(chat)
        for chat in chats:
            await house.hear("hello", chat)
        for number, chat in enumerate(chats, 1):
            seat = await house.agent.seated(number)
            assert seat.brief.chat == chat
            assert house.agent.live <= 2
            seat.say("hi")
            await house.agent.over(seat)

        assert house.agent.most_live == 2


@pytest.mark.rule("R16")
async def test_a_backlog_is_capped_to_the_newest_and_the_rest_is_omitted(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.register(trigger="@Andy")
        oldest = await house.hear("the very first")
        for number in range(MAX_MESSAGES - 1):
            await house.hear(f"talk {number}")
        last = await house.hear("@Andy what was said?")

        seat = await house.agent.seated()

        assert len(seat.texts()) == MAX_MESSAGES
        assert seat.brief.batch.omitted == 1
        seat.say("a lot")
        await house.settled(last, "answered")
        assert await house.state(oldest) == "omitted"


@pytest.mark.rule("R8")
async def test_words_after_the_turns_end_reach_the_chat_and_leave_the_cursor(house: House) -> None:
    message = await house.hear("one")
    (await house.agent.seated()).say("hi")
    await house.settled(message, "answered")
    await house.idle()
    chat = await house.chat()
    late = LateBlock(
        agent=AgentId("a1"), number=1, chat=CHAT, epoch=chat.epoch, text="one more thing"
    )

    await house.exchange.late(late)
    await house.exchange.late(late)

    assert await house.replies() == ["hi", "one more thing"]
    assert (await house.chat()).cursor == chat.cursor
