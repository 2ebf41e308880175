"""Programs that do not say how far their answers reach (R3): what each of their blocks covers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agents.house import RealHouse, open_real_house
from tests.agents.room import QUICK, Room, brief, foreign, next_block, next_exit, open_room, until

PUPPET = foreign("puppet.py")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[RealHouse]:
    async with open_real_house(tmp_path) as opened:
        opened.employ(PUPPET)
        yield opened


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as opened:
        yield opened


@pytest.mark.rule("R3")
@pytest.mark.requirement("queue.running.pending-runs-next")
@pytest.mark.requirement("container.output.parsed-at-once")
async def test_the_first_success_covers_stdin_and_the_next_message_follows_as_a_file(
    house: RealHouse,
) -> None:
    first = await house.hear("one")
    await until((house.room.files() / "started.json").exists)
    second = await house.hear("two")
    await house.room.strings().do("pass")
    assert list(house.room.input().iterdir()) == []

    await house.room.strings().do("say('to one')")
    await house.settled(first, "answered")
    pid = house.room.pid()
    await house.room.strings().do("said = take(); say(f'to {said}')")
    await house.settled(second, "answered")

    assert await house.replies() == ["to one", "to two"]
    assert house.room.pid() == pid


@pytest.mark.rule("R3")
async def test_messages_that_waited_for_the_answer_go_as_one_file(house: RealHouse) -> None:
    first = await house.hear("one")
    await until((house.room.files() / "started.json").exists)
    later = [await house.hear(text) for text in ("two", "three")]

    await house.room.strings().do("say('to one')")
    await house.settled(first, "answered")
    await house.room.strings().do("say(take())")

    for message in later:
        await house.settled(message, "answered")
    assert await house.replies() == ["to one", "two\nthree"]


@pytest.mark.rule("R3")
async def test_a_success_before_the_file_is_gone_does_not_cover_it(room: Room) -> None:
    room.strings().order("say('one')")
    await room.turn("one", settings=PUPPET, epoch=1)

    async with room.agents.seat(brief("two", settings=PUPPET, epoch=2, through=2)) as seat:
        await room.strings().do("say('more about one')")
        early = await next_block(seat)
        await room.strings().do("take(); say('two')")
        block = await next_block(seat)

    assert (early.through, early.idle) == (1, False)
    assert (block.text, block.through, block.idle) == ("two", 2, True)


@pytest.mark.rule("R3")
async def test_a_null_that_comes_before_the_file_is_taken_covers_nothing(room: Room) -> None:
    room.strings().order("say('one')")
    await room.turn("one", settings=PUPPET, epoch=1)

    async with room.agents.seat(brief("two", settings=PUPPET, epoch=2, through=2)) as seat:
        await room.strings().do("say(None)")
        marker = await next_block(seat)
        await room.strings().do("take()")
        await asyncio.sleep(2 * QUICK.closing_marker.total_seconds())  # the time is the matter
        await room.strings().do("say('two')")
        block = await next_block(seat)

    assert (marker.text, marker.through, marker.idle) == (None, 1, False)
    assert (block.text, block.through) == ("two", 2)


@pytest.mark.rule("R3")
async def test_a_closing_marker_behind_a_text_gives_way_to_the_answer_that_follows(
    room: Room,
) -> None:
    room.strings().order("say('one')")
    await room.turn("one", settings=PUPPET, epoch=1)

    async with room.agents.seat(brief("two", settings=PUPPET, epoch=2, through=2)) as seat:
        await room.strings().do("take(); say(None); say('two')")
        block = await next_block(seat)

    assert (block.text, block.through, block.idle) == ("two", 2, True)


@pytest.mark.rule("R3")
@pytest.mark.requirement("container.output.result-nullable")
async def test_a_null_that_nothing_follows_is_an_answer(house: RealHouse) -> None:
    house.room.strings().order("say('to one')")
    await house.settled(await house.hear("one"), "answered")

    second = await house.hear("two")
    await house.room.strings().do("take(); say(None)")

    await house.settled(second, "silent")
    assert await house.replies() == ["to one"]


@pytest.mark.rule("R3")
async def test_a_null_before_the_exit_is_an_answer_too(room: Room) -> None:
    room.strings().order("say('one')")
    await room.turn("one", settings=PUPPET, epoch=1)

    async with room.agents.seat(brief("two", settings=PUPPET, epoch=2, through=2)) as seat:
        room.strings().order("take(); say(None); leave()")
        block = await next_block(seat)
        await next_exit(seat)

    assert (block.text, block.through, block.idle) == (None, 2, True)


@pytest.mark.rule("R3")
@pytest.mark.requirement("container.output.plain-markers")
@pytest.mark.requirement("container.output.plain-multiline")
@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
async def test_a_program_of_the_first_dialect_that_leaves_after_each_answer_works(
    tmp_path: Path, sandbox: str
) -> None:
    async with open_real_house(tmp_path, sandbox=sandbox) as house:
        house.employ(foreign("one_shot.sh"))

        for text in ("one", "two", "three"):
            await house.settled(await house.hear(text), "answered")

        assert await house.replies() == ["Here you are.\nAnd off I go."] * 3
        await house.room.gone()


@pytest.mark.rule("R3")
@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
async def test_a_foreign_program_that_stays_answers_everything_in_order(
    tmp_path: Path, sandbox: str
) -> None:
    async with open_real_house(tmp_path, sandbox=sandbox) as house:
        house.employ(foreign("good.py"))

        for text in ("one", "two", "three"):
            await house.settled(await house.hear(text), "answered")

        assert await house.replies() == ["heard: one", "also heard: two", "also heard: three"]


@pytest.mark.rule("R5")
async def test_files_left_lying_at_an_exit_are_a_new_turn_at_once(house: RealHouse) -> None:
    """The program says `through`, so that a follow-up is piped while it works."""
    first = await house.hear("one")
    await house.room.strings().do("say('working', through=0, idle=False)")
    second = await house.hear("two")
    await until(lambda: any(house.room.input().glob("*.json")))

    house.room.strings().order("say('to one', through=start['through'], idle=False); leave()")
    await house.settled(first, "answered")
    await house.room.strings().do("say('to two', through=start['through'])")

    fate = await house.settled(second, "answered")
    assert fate.turn is not None
    assert fate.turn.attempt == 1
    assert (await house.replies())[-2:] == ["to one", "to two"]


@pytest.mark.rule("R5")
async def test_a_file_taken_up_and_not_answered_is_a_failure(house: RealHouse) -> None:
    first = await house.hear("one")
    await house.room.strings().do("say('working', through=0, idle=False)")
    second = await house.hear("two")
    house.room.strings().order("take(); say('to one', through=start['through'], idle=False)")
    house.room.strings().order("leave(3)")

    await house.settled(second, "failed")

    assert await house.house.state(first) == "answered"
    assert await house.why(second) == "the agent ended without an answer (exit code 3)"


@pytest.mark.rule("R2")
@pytest.mark.requirement("container.output.several-blocks")
@pytest.mark.requirement("container.output.each-block-is-sent")
@pytest.mark.requirement("container.output.json-markers")
@pytest.mark.requirement("container.output.new-session-id")
@pytest.mark.requirement("container.output.session-saved")
async def test_every_block_is_a_message_and_the_session_comes_back(house: RealHouse) -> None:
    first = await house.hear("one")
    await house.room.strings().do(
        "say('a', through=0, idle=False); say('b', through=start['through'], newSessionId='s-1')"
    )
    await house.settled(first, "answered")
    assert await house.replies() == ["a", "b"]
    await house.room.agents.forget(first.chat)

    house.room.strings().order("say(start['sessionId'], through=start['through'])")
    await house.settled(await house.hear("two"), "answered")

    assert (await house.replies())[-1] == "s-1"


@pytest.mark.requirement("container.stdin.single-json-then-close")
@pytest.mark.requirement("container.stdin.prompt")
@pytest.mark.requirement("container.stdin.group-folder")
@pytest.mark.requirement("container.stdin.chat-jid")
@pytest.mark.requirement("container.stdin.assistant-name")
@pytest.mark.requirement("container.stdin.messages")
async def test_a_program_is_given_one_object_and_the_end_of_its_stdin(house: RealHouse) -> None:
    message = await house.hear("is 1 < 2?")
    await house.room.strings().do("say(json.dumps([start, sys.stdin.read()]))")
    await house.settled(message, "answered")

    (told,) = await house.replies()
    for field in ('"groupFolder": "family"', '"chatJid": "fake:family"', '"isMain": false'):
        assert field in told
    assert '"assistantName": "Andy"' in told
    assert "is 1 &lt; 2?" in told
    assert told.endswith(', ""]')
