from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter_wire.blocks import Block, BlockReader, Found, Malformed, encode_block
from tests.wire.golden_files import assert_fits, golden

START, END = b"---NANOCLAW_OUTPUT_START---", b"---NANOCLAW_OUTPUT_END---"
SMALL = 64  # bytes

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
blocks = st.builds(
    Block,
    status=st.sampled_from(["success", "error"]),
    result=st.none() | words,
    session_id=st.none() | words.filter(bool),
    error=st.none() | words,
    through=st.none() | st.integers(min_value=0),
    idle=st.none() | st.booleans(),
)
pieces = st.sampled_from(
    [
        START, END, b"OUTPUT_START_MARKER", b"OUTPUT_END_MARKER", b"\n", b"\r\n", b" ", b"text",
        b'{"status":"success","result":"yes"}', b'{"status":"maybe"}', b"{", b"\xff", "é".encode(),
        b" " * 600, b"x" * 2000,
    ]
)  # fmt: skip


def read(*chunks: bytes, max_block: int = 1 << 20) -> list[Found]:
    reader = BlockReader(max_block=max_block)
    return [found for chunk in chunks for found in reader.feed(chunk)] + reader.close()


def wrapped(body: str) -> bytes:
    return b"%b\n%b\n%b\n" % (START, body.encode(), END)


def success(result: str | None) -> Block:
    return Block(status="success", result=result)


@given(written=st.lists(blocks))
def test_what_is_encoded_is_read_again(written: list[Block]) -> None:
    assert read(*map(encode_block, written)) == written


@given(stream=st.lists(pieces, max_size=30).map(b"".join), data=st.data())
def test_any_cutting_of_any_stream_gives_the_same_blocks(
    stream: bytes, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    bounds = [0, *cuts, len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(bounds)]
    by_byte = [stream[i : i + 1] for i in range(len(stream))]
    whole = read(stream, max_block=SMALL)
    assert read(*chunks, max_block=SMALL) == whole
    assert read(*by_byte, max_block=SMALL) == whole


@pytest.mark.requirement("container.output.json-markers")
@pytest.mark.requirement("container.output.status")
@pytest.mark.requirement("container.output.new-session-id")
@pytest.mark.requirement("container.output.error-detail")
@pytest.mark.rule("R2")
@pytest.mark.parametrize("name", ["block.txt", "block-error.txt"])
def test_a_block_is_written_as_it_was_read(name: str) -> None:
    (block,) = read(golden(name))
    assert isinstance(block, Block)
    assert encode_block(block) == golden(name)
    assert_fits(encode_block(block).splitlines()[1], "block")


@pytest.mark.requirement("container.output.plain-markers")
@pytest.mark.requirement("container.output.plain-multiline")
@pytest.mark.requirement("container.output.several-blocks")
def test_the_first_dialect_is_plain_text() -> None:
    assert read(golden("stream-000.txt")) == [
        success("Here is the answer,\n  on two lines."),
        success("And another."),
    ]


@pytest.mark.requirement("container.output.result-nullable")
@pytest.mark.requirement("container.output.several-blocks")
def test_the_second_dialect_is_json_and_may_be_null() -> None:
    assert read(golden("stream-001.txt")) == [
        Block(status="success", result="Here is the answer...", session_id="sess_abc123"),
        Block(status="success", result=None, session_id="sess_abc123"),
    ]


@pytest.mark.requirement("container.output.partial-is-buffered")
def test_a_block_is_there_with_its_end_marker_and_not_before() -> None:
    reader = BlockReader()
    assert reader.feed(b"OUTPUT_START_MARKER\nhel") == []
    assert reader.feed(b"lo\nOUTPUT_END_MARKER") == []
    assert reader.feed(b"\n") == [success("hello")]


def test_a_character_cut_in_two_survives() -> None:
    stream = encode_block(success("مرحبا"))
    assert read(stream[:60], stream[60:61], stream[61:]) == [success("مرحبا")]


def test_white_space_and_carriage_returns_around_markers_are_tolerated() -> None:
    stream = b' \t%b \r\n{"status":"success","result":"a"}\r\n\t%b\r\n' % (START, END)
    assert read(stream) == [success("a")]


def test_a_marker_inside_a_line_is_text() -> None:
    stream = b"OUTPUT_START_MARKER\nsay OUTPUT_END_MARKER\nOUTPUT_END_MARKER\n"
    assert read(stream) == [success("say OUTPUT_END_MARKER")]


def test_an_end_marker_of_the_other_dialect_is_text() -> None:
    assert read(b"OUTPUT_START_MARKER\n%b\nOUTPUT_END_MARKER\n" % END) == [success(END.decode())]


def test_a_last_marker_without_a_line_feed_counts() -> None:
    assert read(wrapped('{"status":"success","result":"a"}').rstrip()) == [success("a")]


def test_an_empty_plain_block_is_silence() -> None:
    assert read(b"OUTPUT_START_MARKER\n\n  \nOUTPUT_END_MARKER\n") == [success(None)]


def test_rubbish_around_blocks_is_ignored() -> None:
    rubbish = b"\xff\xfe\x00 log line\n%b\nOUTPUT_END_MARKER\n" % END
    assert read(rubbish + encode_block(success("a")) + rubbish) == [success("a")]


def test_half_a_block_at_the_end_is_reported() -> None:
    assert read(START + b'\n{"status":"succ') == [
        Malformed(reason="the output ended inside a block", excerpt='{"status":"succ')
    ]


def test_a_start_inside_a_block_begins_anew() -> None:
    assert read(b"OUTPUT_START_MARKER\nhalf\n" + encode_block(success("whole"))) == [
        Malformed(reason="a block began inside another", excerpt="half"),
        success("whole"),
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('"text"', "must be a JSON object, not a string"),
        ('{"result":"a"}', "status: must be 'success' or 'error'"),
        ('{"status":"fine"}', "status: must be 'success' or 'error'"),
        ('{"status":["success"]}', "status: must be 'success' or 'error'"),
    ],
)
def test_a_broken_block_is_reported_with_its_reason(body: str, reason: str) -> None:
    found = read(wrapped(body) + encode_block(success("next")))
    assert isinstance(found[0], Malformed)
    assert found[0].reason.startswith(reason)
    assert found[0].excerpt == body[:200]
    assert found[1:] == [success("next")]


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"a": ["é", 1]}, '{"a":["é",1]}'),
        (7, "7"),
        (False, "false"),
        ("half \ud800 and nul \0", "half \ufffd and nul \ufffd"),
    ],
)
def test_any_result_becomes_text_that_can_be_stored(value: object, result: str) -> None:
    assert read(wrapped(json.dumps({"status": "success", "result": value}))) == [success(result)]


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    stream = wrapped('{"status":"success","result":"a?b"}').replace(b"?", b"\xff")
    assert read(stream) == [success("a\ufffdb")]


@pytest.mark.rule("R3")
@pytest.mark.parametrize("through", ["true", "-1", '"3"', "1.5", "null", "[]"])
def test_a_through_that_is_no_number_counts_as_not_said(through: str) -> None:
    body = f'{{"status":"success","result":"a","through":{through},"idle":"yes"}}'
    assert read(wrapped(body)) == [success("a")]


def test_a_block_that_is_too_large_is_reported_once_and_skipped() -> None:
    stream = wrapped("x" * 50 + "\n" + "y" * 50) + encode_block(success(None))
    reader = BlockReader(max_block=SMALL)
    found = [item for i in range(len(stream)) for item in reader.feed(stream[i : i + 1])]
    assert [type(item) for item in found] == [Malformed, Block]
    assert isinstance(found[0], Malformed)
    assert found[0].reason == "a block is larger than 64 bytes"


def test_fifty_megabytes_of_rubbish_do_not_hide_the_block_behind_them() -> None:
    reader = BlockReader()
    for rubbish in (b" " * 65536, b"x\n" * 32768, END + b"\n", b"\n" * 65536):
        for _ in range(200):
            assert reader.feed(rubbish) == []
    assert reader.feed(b"\n" + encode_block(success("here"))) == [success("here")]
    assert len(reader._pending) == 0
