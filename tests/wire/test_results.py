from __future__ import annotations

import pytest

from hallporter_wire.errors import WireError
from hallporter_wire.results import Result, decode_result, encode_result
from tests.wire.golden_files import assert_fits, golden


def test_a_result_has_its_details_in_both_dialects() -> None:
    result = Result(
        ok=True,
        details={
            "task_id": "task-1",
            "status": "active",
            "next_run": "2026-02-20T09:00:00+01:00",
        },
    )
    assert encode_result(result) + b"\n" == golden("result.json")
    assert_fits(encode_result(result), "result")


def test_a_refusal_says_why() -> None:
    result = Result(ok=False, error="only the main group may register groups: ask there")
    assert encode_result(result) + b"\n" == golden("result-refused.json")
    assert_fits(encode_result(result), "result")
    assert decode_result(golden("result-refused.json")) == result


def test_a_result_is_read_as_it_was_written() -> None:
    read = decode_result(golden("result.json"))
    assert read.ok
    assert read.details["task_id"] == read.details["taskId"] == "task-1"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"ok": 1}'])
def test_what_is_no_result_is_told(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_result(data)
