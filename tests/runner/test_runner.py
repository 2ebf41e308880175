from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hallporter_wire.blocks import Block
from hallporter_wire.follow_up import CLOSE
from tests.runner.conftest import Start
from tests.runner.program import Program, leave_follow_up

DEMO = [sys.executable, "-m", "hallporter_runner", "demo"]


@pytest.mark.requirement("runner.start.reads-stdin")
@pytest.mark.requirement("runner.output.block-per-result")
@pytest.mark.rule("R2")
def test_the_prompt_is_answered_by_a_block_that_says_how_far_it_reaches(start: Start) -> None:
    block = start("count to 3", through=7).block()
    assert (block.status, block.result) == ("success", "1, 2, 3.")
    assert (block.through, block.idle) == (7, True)


@pytest.mark.rule("R3")
def test_a_host_that_counts_nothing_is_answered_too(start: Start) -> None:
    runner = start("count to 3", through=None)
    assert runner.block().through is None
    runner.tell(1, "count to 2")
    assert runner.block().through is None


@pytest.mark.requirement("input.runner.fed-into-running-query")
@pytest.mark.requirement("idle.agent.stays-alive")
@pytest.mark.rule("R2")
def test_a_follow_up_is_answered_in_the_same_session_and_its_file_is_gone(start: Start) -> None:
    runner = start("count to 3", through=7)
    first = runner.block()
    file = runner.tell(1, "count to 4", through=9)
    second = runner.block()
    assert (second.result, second.through, second.idle) == ("1, 2, 3, 4.", 9, True)
    assert second.session_id == first.session_id
    assert not file.exists()


def test_files_that_wait_are_taken_up_together_in_the_order_of_their_names(
    start: Start, tmp_path: Path
) -> None:
    leave_follow_up(tmp_path, 2, "count to 2", through=3)
    leave_follow_up(tmp_path, 1, "count to 9", through=2)
    runner = start("count to 3")
    assert runner.block().through == 1
    block = runner.block()
    assert block.result == "1, 2.\n\n(I also read one other message.)"
    assert (block.through, block.idle) == (3, True)


@pytest.mark.rule("R2")
def test_what_is_said_while_the_agent_works_is_in_the_same_answer(
    start: Start, tmp_path: Path
) -> None:
    leave_follow_up(tmp_path, 2, "and bread", through=3)
    leave_follow_up(tmp_path, 1, "buy milk", through=2)
    block = start("work slowly for 1 second", through=1).block()
    assert block.result == (
        "Done: I worked for one second.\n\nWhile I worked you also said:\n\n- buy milk\n- and bread"
    )
    assert (block.through, block.idle) == (3, True)


@pytest.mark.requirement("input.runner.every-500ms")
def test_a_file_that_the_kernel_does_not_report_is_found_by_looking(start: Start) -> None:
    runner = start("count to 3")
    runner.block()
    # A hard link is neither written nor moved, so no event tells of it.
    hidden = runner.put("not-yet", b'{"type":"message","content":"count to 2"}')
    (runner.input / "000000000001.json").hardlink_to(hidden)
    assert runner.block().result == "1, 2."


@pytest.mark.requirement("input.close.file")
@pytest.mark.requirement("input.close.runner-exits-cleanly")
def test_the_close_file_ends_it_cleanly(start: Start) -> None:
    runner = start("count to 3")
    runner.block()
    runner.close()
    assert runner.end() == (0, [], "")


@pytest.mark.requirement("input.close.object")
def test_the_close_object_ends_it_cleanly(start: Start) -> None:
    runner = start("count to 3")
    runner.block()
    runner.put("000000000001.json", b'{"type":"_close"}')
    assert runner.end() == (0, [], "")


@pytest.mark.rule("R5")
def test_closing_takes_up_nothing_more(start: Start, tmp_path: Path) -> None:
    waiting = leave_follow_up(tmp_path, 1, "count to 2")
    (waiting.parent / CLOSE).touch()
    code, found, _ = start("count to 3").end()
    assert (code, len(found)) == (0, 1)
    assert waiting.exists()


def test_closing_during_work_ends_it_without_an_answer(start: Start) -> None:
    runner = start("work slowly for 60 seconds")
    runner.close()
    assert runner.end() == (0, [], "")


def test_a_bad_file_is_thrown_away_and_the_next_one_is_read(start: Start) -> None:
    runner = start("count to 3")
    runner.block()
    bad = runner.put("000000000001.json", b"{")
    runner.tell(2, "count to 2")
    assert runner.block().result == "1, 2."
    assert not bad.exists()
    runner.close()
    code, _, err = runner.end()
    assert code == 0
    assert "input file 000000000001.json was thrown away: not JSON" in err


def test_what_is_no_input_file_is_left_alone(start: Start) -> None:
    runner = start("count to 3")
    runner.block()
    (runner.input / "folder.json").mkdir()
    half_written = runner.put("000000000001.json.part", b"{")
    runner.tell(2, "count to 2")
    assert runner.block().result == "1, 2."
    assert half_written.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_at_once_without_a_block(start: Start, number: int, code: int) -> None:
    runner = start("count to 3")
    runner.block()
    runner.signal(number)
    assert runner.end() == (code, [], "")


def test_it_ends_when_nobody_reads_it_any_more(start: Start) -> None:
    runner = start("count to 3")
    runner.block()
    runner.stop_reading()
    code, _, err = runner.end()
    assert (code, err) == (1, "nobody reads the output any more; ending\n")


@pytest.mark.parametrize(
    ("stdin", "complaint"),
    [(b"", "not JSON"), (b"{", "not JSON"), (b'{"prompt":1}', "prompt: must be a string")],
)
def test_a_bad_stdin_is_answered_by_an_error_block(
    tmp_path: Path, stdin: bytes, complaint: str
) -> None:
    with Program(DEMO, workspace=tmp_path) as runner:
        runner.begin(stdin)
        block = runner.block()
        assert block.status == "error"
        assert complaint in (block.error or "")
        assert runner.end()[0] == 1


def test_an_exception_is_an_error_block_and_a_trace_for_the_operator(
    start: Start,
) -> None:
    runner = start("count to 3")
    runner.block()
    runner.tell(1, "count to 2")
    runner.block()  # from here on it watches the folder, and would not make it anew
    runner.input.rmdir()
    block = runner.block()
    assert block.status == "error"
    assert (block.error or "").startswith("The demo agent stopped: FileNotFoundError")
    code, _, err = runner.end()
    assert code == 1
    assert "Traceback" in err


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    run = subprocess.run([*DEMO[:-1], "oracle"], capture_output=True, check=False, text=True)
    assert (run.returncode, run.stderr) == (2, "usage: python3 -m hallporter_runner {demo,mcp}\n")


def test_the_demo_agent_loads_nothing_heavy() -> None:
    script = "import sys, hallporter_runner.__main__, hallporter_runner.demo.agent as _; "
    # Measuring coverage would load much more than the agent does.
    unmeasured = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")}
    run = subprocess.run(
        [sys.executable, "-c", f"{script}print(*sys.modules)"],
        env=unmeasured,
        capture_output=True,
        check=True,
        text=True,
    )
    assert not {"asyncio", "mcp", "hallporter", "socket", "zoneinfo"} & set(run.stdout.split())


def test_several_replies_say_that_more_will_come(start: Start) -> None:
    runner = start("answer in 3 parts", through=4)
    blocks = [runner.block() for _ in range(3)]
    assert [block.result for block in blocks] == [f"Part {n} of 3." for n in (1, 2, 3)]
    assert [(block.through, block.idle) for block in blocks] == [(4, False), (4, False), (4, True)]


def test_silence_is_a_block_without_a_result(start: Start) -> None:
    block = start("say nothing", through=4).block()
    assert block == Block(
        status="success", result=None, session_id=block.session_id, through=4, idle=True
    )


@pytest.mark.rule("R5")
def test_a_failure_on_request_is_an_error_block(start: Start) -> None:
    runner = start("fail")
    block = runner.block()
    assert (block.status, block.error) == (
        "error",
        "The demo agent failed because it was asked to.",
    )
    assert runner.end() == (1, [], "")


@pytest.mark.rule("R5")
def test_a_crash_on_request_says_nothing_at_all(start: Start) -> None:
    assert start("crash").end() == (3, [], "")


def test_a_session_is_remembered_by_the_next_runner(start: Start) -> None:
    first = start("hello").block()
    second = start("how many messages?", session_id=first.session_id).block()
    assert second.session_id == first.session_id
    assert (second.result or "").startswith("I have seen 2 messages in this session.")


def test_without_a_session_a_new_one_begins(start: Start) -> None:
    first = start("hello").block()
    second = start("how many messages?").block()
    assert second.session_id != first.session_id
    assert (second.result or "").startswith("I have seen one message in this session.")
