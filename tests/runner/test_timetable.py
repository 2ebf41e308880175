from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallporter_runner.demo.timetable import Plan, plan_at_end, plan_at_start
from hallporter_runner.schedules import trouble_with
from hallporter_runner.tools import ToolError

NOW = datetime.fromisoformat("2026-02-19T12:00:00+02:00")  # a Thursday

WORDS = st.from_regex(
    r"in|at|on|every|each|next|half|an?|and|,|:|0|2|30|999999|18:30|9:75|6|pm|minutes|h|1h30m|days"
    r"|week|month|day|morning|weekday|monday|fridays|tomorrow|today|2026-02-30|9999-12-31|0001-01-01"
    r"|noon|second|other|hourly|daily|the|31st|buy|milk",
    fullmatch=True,
)


def plan(words: str) -> Plan:
    """The words before something to do, and behind it, mean the same."""
    first, last = plan_at_start(f"{words} buy milk", NOW), plan_at_end(f"buy milk {words}.", NOW)
    assert first is not None
    assert first[1] == " buy milk"
    assert last == (first[0], "buy milk ")
    assert trouble_with(first[0].type, first[0].value) == ""
    return first[0]


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("in 2 minutes", "10:02:00"),
        ("in 30 seconds", "10:00:30"),
        ("in 30s", "10:00:30"),
        ("in 5 min", "10:05:00"),
        ("In an hour", "11:00:00"),
        ("in half an hour", "10:30:00"),
        ("in 1h30m", "11:30:00"),
        ("in 1.5 hours", "11:30:00"),
        ("in one hour and 15 minutes", "11:15:00"),
        ("in two hrs, 5 secs", "12:00:05"),
        ("in 1 second", "10:00:03"),
    ],
)
def test_a_stretch_of_time_is_a_moment_in_utc(words: str, moment: str) -> None:
    found = plan(words)
    assert (found.type, found.value, found.timezone) == ("once", f"2026-02-19T{moment}", "UTC")
    assert found.words == words


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("at 18:30", "19T18:30"),
        ("at 18.30", "19T18:30"),
        ("at 6pm", "19T18:00"),
        ("at 6:30 p.m.", "19T18:30"),
        ("at 12 am", "20T00:00"),
        ("at 12pm", "20T12:00"),
        ("at 9", "20T09:00"),
        ("at 9 o'clock", "20T09:00"),
        ("at noon", "20T12:00"),
        ("at midnight", "20T00:00"),
        ("at 23 today", "19T23:00"),
        ("today at 8", "19T08:00"),
        ("today", "19T13:00"),
        ("tonight", "19T20:00"),
        ("tonight at 22", "19T22:00"),
        ("tomorrow", "20T09:00"),
        ("tomorrow at 9", "20T09:00"),
        ("tomorrow, at 7:15", "20T07:15"),
        ("at 7:15 tomorrow", "20T07:15"),
        ("on friday at 10", "20T10:00"),
        ("Monday", "23T09:00"),
        ("thursday at 13", "19T13:00"),
        ("thursday at 11", "26T11:00"),
        ("next Thu at 13", "26T13:00"),
        ("on 2026-02-27 at 15:30", "27T15:30"),
    ],
)
def test_a_time_of_day_is_local_and_the_next_one_ahead(words: str, moment: str) -> None:
    found = plan(words)
    assert (found.type, found.value, found.timezone) == ("once", f"2026-02-{moment}:00", "")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("every day at 9", "0 9 * * *"),
        ("every day", "0 9 * * *"),
        ("everyday at 9", "0 9 * * *"),
        ("daily at 6:05 pm", "5 18 * * *"),
        ("at 9 every day", "0 9 * * *"),
        ("every morning", "0 9 * * *"),
        ("each evening", "0 18 * * *"),
        ("every night at 23:30", "30 23 * * *"),
        ("every weekday at 9:30", "30 9 * * 1-5"),
        ("every working day at 9:30", "30 9 * * 1-5"),
        ("every weekend at 10", "0 10 * * 0,6"),
        ("every monday at 10", "0 10 * * 1"),
        ("every Sun", "0 9 * * 0"),
        ("every mon, wed and friday at 8", "0 8 * * 1,3,5"),
        ("at 8 every tuesday", "0 8 * * 2"),
        ("every month", "0 9 1 * *"),
        ("every month on the 15th at 8", "0 8 15 * *"),
    ],
)
def test_days_are_a_cron_expression(words: str, value: str) -> None:
    assert (plan(words).type, plan(words).value) == ("cron", value)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("every 5 minutes", 300),
        ("every minute", 60),
        ("every hour", 3600),
        ("hourly", 3600),
        ("each second hour", 7200),
        ("every other day", 172_800),
        ("every 30 secs", 30),
        ("every half an hour", 1800),
        ("every week", 604_800),
    ],
)
def test_a_rhythm_is_an_interval(words: str, seconds: int) -> None:
    assert (plan(words).type, plan(words).value) == ("interval", f"{seconds}000")


@pytest.mark.parametrize(
    "words", ["every dog", "in a while", "in 2 mice", "at home", "monde", "soon", "every", "at 9:3"]
)
def test_other_words_are_no_time(words: str) -> None:
    assert plan_at_start(f"{words} buy milk", NOW) is None
    assert plan_at_end(f"buy milk {words}", NOW) is None


def test_a_time_alone_leaves_nothing() -> None:
    assert plan_at_start("in 2 minutes", NOW) == (plan("in 2 minutes"), "")
    assert plan_at_end("in 2 minutes", NOW) is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("at 25:00", "25:00 is no time of day"),
        ("at 13 pm", "13 pm is no time of day"),
        ("every day at 9:75", "9:75 is no time of day"),
        ("on 2026-02-30", "2026-02-30 is no day of the calendar"),
        ("in 999999 weeks", "999999 weeks is too far away"),
    ],
)
def test_a_time_that_cannot_be_is_told(words: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        plan_at_start(words, NOW)


@pytest.mark.parametrize(
    ("now", "words", "value"),
    [
        ("08:59:00", "today", "09:00:00"),
        ("09:00:00", "today", "10:00:00"),
        ("20:00:01", "tonight", "21:00:00"),
        ("22:59:59", "today", "23:00:00"),
    ],
)
def test_today_without_a_time_is_the_usual_one_or_the_next_full_hour(
    now: str, words: str, value: str
) -> None:
    found = plan_at_start(words, datetime.fromisoformat(f"2026-02-19T{now}+02:00"))
    assert found is not None
    assert found[0].value == f"2026-02-19T{value}"


def test_today_without_a_time_cannot_be_in_its_last_hour() -> None:
    with pytest.raises(ToolError, match="almost over"):
        plan_at_start("today", datetime.fromisoformat("2026-02-19T23:00:00+02:00"))


@given(st.lists(WORDS, max_size=8).map(" ".join))
def test_whatever_is_said_is_a_schedule_or_none_or_told(text: str) -> None:
    for read in (plan_at_start, plan_at_end):
        try:
            found = read(text, NOW)
        except ToolError:
            continue
        if found is not None and found[0].value != "0":
            assert trouble_with(found[0].type, found[0].value) == ""
