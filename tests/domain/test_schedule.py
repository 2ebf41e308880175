from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.schedule import (
    MAX_COUNTED,
    Schedule,
    Type,
    due_times,
    next_due,
    parse_schedule,
    remark,
)

NOW = datetime(2026, 2, 19, 10, 0, tzinfo=UTC)
BERLIN = "Europe/Berlin"
# Northern and southern summers, none, half hours, changes at midnight. Not Lord Howe, whose clocks
# move by half an hour: there cronsim leaves out what lies right behind the change.
ZONES = (
    "UTC",
    BERLIN,
    "America/New_York",
    "Asia/Kolkata",
    "America/Santiago",
    "Asia/Beirut",
)
EXPRESSIONS = (
    "* * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0,30 1-3 * * *",
    "*/20 2 * * *",
    "0 0 * * *",
    "15 0 1 * *",
    "0 9 * * 1-5",
    "0 12 29 2 *",
    "@weekly",
)

# When clocks of these zones change; what goes wrong goes wrong there.
CHANGES = (
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 3, 28, 22, tzinfo=UTC),
    datetime(2026, 4, 5, 3, tzinfo=UTC),
    datetime(2026, 9, 6, 4, tzinfo=UTC),
    datetime(2026, 10, 24, 21, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
)
somewhen = st.timedeltas(timedelta(days=-400), timedelta(days=1100)).map(lambda span: NOW + span)
around_a_change = st.builds(
    lambda change, span: change + span,
    st.sampled_from(CHANGES),
    st.timedeltas(timedelta(hours=-3), timedelta(hours=3)),
)
moments = somewhen | around_a_change
crons = st.builds(
    Schedule,
    type=st.just(Type.CRON),
    value=st.sampled_from(EXPRESSIONS),
    timezone=st.sampled_from(ZONES),
)


def cron(value: str, zone: str = BERLIN) -> Schedule:
    return parse_schedule("cron", value, zone, NOW)


def once(value: str, zone: str = BERLIN) -> Schedule:
    return parse_schedule("once", value, zone, NOW)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def after(schedule: Schedule, moment: datetime, count: int) -> list[datetime]:
    found = []
    for _ in range(count):
        following = next_due(schedule, anchor=NOW, after=moment)
        assert following is not None
        found.append(following)
        moment = following
    return found


# --- cron ----------------------------------------------------------------------------------------


@pytest.mark.requirement("task.schedule.cron")
def test_a_cron_expression_is_read_in_the_zone_of_the_task() -> None:
    assert after(cron("0 9 * * *"), NOW, 2) == [utc("2026-02-20T08:00"), utc("2026-02-21T08:00")]
    assert after(cron("*/5 * * * *"), NOW, 2) == [utc("2026-02-19T10:05"), utc("2026-02-19T10:10")]


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("@hourly", "2026-02-19T11:00"),
        ("@daily", "2026-02-20T00:00"),
        ("@midnight", "2026-02-20T00:00"),
        ("@weekly", "2026-02-22T00:00"),
        ("@monthly", "2026-03-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@Annually", "2027-01-01T00:00"),
    ],
)
def test_the_words_for_cron_are_known(word: str, first: str) -> None:
    assert after(cron(word, "UTC"), NOW, 1) == [utc(first)]


def test_a_time_of_day_that_the_clocks_skip_comes_once_when_they_have_moved() -> None:
    half_past_two = cron("30 2 * * *")
    assert after(half_past_two, utc("2026-03-28T01:30"), 2) == [
        utc("2026-03-29T01:00"),  # 03:00 in summer time
        utc("2026-03-30T00:30"),
    ]


def test_a_time_of_day_that_comes_twice_is_taken_once() -> None:
    half_past_two = cron("30 2 * * *")
    assert after(half_past_two, utc("2026-10-24T12:00"), 2) == [
        utc("2026-10-25T00:30"),  # still summer time
        utc("2026-10-26T01:30"),
    ]
    # Asked for between the two, too.
    assert after(half_past_two, utc("2026-10-25T01:10"), 1) == [utc("2026-10-26T01:30")]


def test_every_hour_is_every_hour_also_when_the_clocks_change() -> None:
    for day in ("2026-03-28T20:30", "2026-10-24T20:30"):
        for earlier, later in pairwise(after(cron("0 * * * *"), utc(day), 12)):
            assert later - earlier == timedelta(hours=1)


@given(schedule=crons, moment=moments)
def test_next_times_are_later_and_none_lies_between(schedule: Schedule, moment: datetime) -> None:
    following = next_due(schedule, anchor=NOW, after=moment)
    assert following is not None
    assert following > moment
    assert following.tzinfo is UTC
    between = moment + (following - moment) / 2
    assert next_due(schedule, anchor=NOW, after=between) == following


@given(schedule=crons, moment=moments)
def test_a_cron_time_is_one_that_the_expression_names(schedule: Schedule, moment: datetime) -> None:
    following = next_due(schedule, anchor=NOW, after=moment)
    assert following is not None
    assert following.second == following.microsecond == 0
    if schedule.value == "0 * * * *":
        assert following - moment <= timedelta(hours=1)
    if schedule.value in ("30 2 * * *", "0 0 * * *"):
        assert following - moment <= timedelta(hours=25)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("0 9 * *", "has 4 fields: a cron expression has five"),
        ("0 0 9 * * *", "has 6 fields"),
        ("", "has 0 fields"),
        ("61 * * * *", "bad minute"),
        ("0 25 * * *", "bad hour"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 */31 * 1#2", "never comes"),
        ("0 0 * * MOM", "bad day-of-week"),
        ("@reboot", "there are @hourly, @daily"),
        ("hello there dear old world", "bad minute"),
        ("* * * * " + "1," * 200, "more than 200 characters"),
    ],
)
def test_what_is_no_cron_expression_is_told_what_is_one(value: str, told: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        cron(value)
    assert told in caught.value.message
    assert caught.value.facts["field"] == "schedule_value"


@given(type_=st.sampled_from([*Type, "daily"]), value=st.text(), zone=st.text())
@example(type_="cron", value="1#2/3 * * * 5L/2", zone="UTC")
@example(type_="cron", value="*/9999999999999999999999999 * * * *", zone="UTC")
@example(type_="cron", value="\ud800 * * * *", zone="UTC")
@example(type_="interval", value="٣٣٣٣", zone="UTC")
@example(type_="once", value="9999-12-31T23:59:59", zone="America/New_York")
@example(type_="once", value="0001-01-01T00:00", zone=BERLIN)
@example(type_="cron", value="* * * * *", zone="../../etc/passwd")
@example(type_="cron", value="* * * * *", zone="Europe")
def test_rubbish_is_refused_and_breaks_nothing(type_: str, value: str, zone: str) -> None:
    for name in (zone, "UTC"):
        try:
            schedule = parse_schedule(type_, value, name, NOW)
        except InvalidRequestError:
            continue
        assert next_due(schedule, anchor=NOW, after=NOW) is not None


def test_a_zone_is_called_by_its_name() -> None:
    for wrong in ("europe/berlin", "", "CEST", "Europe"):
        with pytest.raises(InvalidRequestError, match="is no time zone: write an IANA name"):
            cron("0 9 * * *", wrong)


def test_a_type_is_one_of_three() -> None:
    with pytest.raises(InvalidRequestError, match="it is 'cron', 'interval' or 'once'"):
        parse_schedule("daily", "9", "UTC", NOW)


# --- interval ------------------------------------------------------------------------------------


@pytest.mark.requirement("task.schedule.interval-ms")
def test_an_interval_is_in_milliseconds_and_begins_at_its_anchor() -> None:
    hourly = parse_schedule("interval", "3600000", "UTC", NOW)
    assert after(hourly, NOW, 2) == [NOW + timedelta(hours=1), NOW + timedelta(hours=2)]


@given(
    milliseconds=st.integers(1000, 10**10),
    moment=moments,
)
def test_an_interval_stays_on_its_grid_however_late_one_looks(
    milliseconds: int, moment: datetime
) -> None:
    schedule = parse_schedule("interval", str(milliseconds), "UTC", NOW)
    step = timedelta(milliseconds=milliseconds)
    following = next_due(schedule, anchor=NOW, after=moment)
    assert following is not None
    assert (following - NOW) % step == timedelta(0)
    assert timedelta(0) < following - moment <= step


@pytest.mark.parametrize("value", ["999", "0", "-1000", "1e4", "1000.5", "316224000001", "", "1h"])
def test_an_interval_below_a_second_or_no_number_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequestError, match="whole milliseconds, from 1000"):
        parse_schedule("interval", value, "UTC", NOW)


# --- once ----------------------------------------------------------------------------------------


@pytest.mark.requirement("task.schedule.once-local")
@pytest.mark.parametrize("value", ["2026-02-23T15:30:00", "2026-02-23T15:30", "2026-02-23 15:30"])
def test_a_single_time_is_local(value: str) -> None:
    schedule = once(value)
    assert after(schedule, NOW, 1) == [utc("2026-02-23T14:30")]
    assert next_due(schedule, anchor=NOW, after=utc("2026-02-23T14:30")) is None
    assert remark(schedule) == ""


@pytest.mark.requirement("task.schedule.once-iso")
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("2026-02-23T15:30:00Z", "without 'Z' or offset"),
        ("2026-02-23T15:30:00+01:00", "without 'Z' or offset"),
        ("2026-02-19T10:59:59", "is in the past: in Europe/Berlin it is 2026-02-19T11:00:00"),
        ("2026-02-19T11:00:00", "is in the past"),
        ("2200-01-01T00:00", "more than 100 years away"),
        ("2026-02-30T09:00", "is no time"),
        ("2026-02-23", "is no time: write a local one such as '2026-02-20T09:00:00'"),
        ("tomorrow at nine", "is no time"),
    ],
)
def test_a_single_time_with_an_offset_or_in_the_past_is_refused(value: str, told: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        once(value)
    assert told in caught.value.message


def test_a_single_time_that_the_clocks_skip_moves_with_them_and_it_is_said() -> None:
    schedule = once("2026-03-29T02:30:00")
    assert after(schedule, NOW, 1) == [utc("2026-03-29T01:30")]
    assert remark(schedule) == (
        "2026-03-29T02:30:00 does not exist in Europe/Berlin, because the clocks go forward then:"
        " it will be 2026-03-29T03:30:00"
    )


def test_of_a_single_time_that_comes_twice_the_first_is_meant() -> None:
    assert after(once("2026-10-25T02:30:00"), NOW, 1) == [utc("2026-10-25T00:30")]


# --- what has come due ---------------------------------------------------------------------------


@given(schedule=crons, first=moments, hours=st.integers(0, 72), keep=st.integers(1, 20))
def test_the_newest_times_are_kept_and_the_others_counted(
    schedule: Schedule, first: datetime, hours: int, keep: int
) -> None:
    begin = next_due(schedule, anchor=NOW, after=first)
    assert begin is not None
    until = begin + timedelta(hours=hours)
    every = [begin]
    while (following := next_due(schedule, anchor=NOW, after=every[-1])) and following <= until:
        every.append(following)

    found = due_times(schedule, first=begin, until=until, keep=keep)

    assert list(found.newest) == every[-keep:]
    assert (found.earlier, found.is_more) == (max(0, len(every) - keep), False)


@given(seconds=st.integers(1, 100), count=st.integers(0, 1000), keep=st.integers(1, 200))
def test_missed_intervals_are_reckoned(seconds: int, count: int, keep: int) -> None:
    step = timedelta(seconds=seconds)
    schedule = parse_schedule("interval", str(seconds * 1000), "UTC", NOW)
    found = due_times(schedule, first=NOW, until=NOW + count * step + step / 2, keep=keep)
    assert found.newest[-1] == NOW + count * step
    assert len(found.newest) + found.earlier == count + 1
    assert len(found.newest) <= keep


def test_a_year_of_missed_minutes_is_not_counted_to_its_end() -> None:
    until = NOW + timedelta(days=365)
    found = due_times(cron("* * * * *"), first=NOW, until=until, keep=100)
    assert [found.newest[0], found.newest[-1]] == [until - timedelta(minutes=99), until]
    assert (found.earlier, found.is_more) == (MAX_COUNTED, True)
