"""The line of waiting chats: nobody is overtaken, nobody is lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hallporter.domain.ids import ChatId, Pool
from hallporter.engine.line import Line, Waiting
from tests.fakes.clock import START

CHATS = [ChatId(f"fake:{name}") for name in "abcdefgh"]
POOLS = [Pool("sandboxes"), Pool("remote"), Pool("other")]
SECONDS = st.integers(0, 20)


def waiting(
    chat: str, *, since: int = 0, pool: Pool = POOLS[0], not_before: datetime | None = None
) -> Waiting:
    return Waiting(
        chat=ChatId(chat),
        pool=pool,
        since=START + timedelta(seconds=since),
        not_before=not_before,
    )


@dataclass(frozen=True)
class Expected:
    """What a plain list says of the line: each entry with the order it took its place in."""

    order: int
    entry: Waiting

    def is_ripe(self, now: datetime) -> bool:
        return self.entry.not_before is None or self.entry.not_before <= now


class FairLine(RuleBasedStateMachine):
    """A line beside a plain list that is searched from the beginning each time."""

    @initialize()
    def begin(self) -> None:
        self.line = Line()
        self.now = START
        self.order = 0
        self.expected: dict[ChatId, Expected] = {}

    @rule(
        chat=st.sampled_from(CHATS),
        pool=st.sampled_from(POOLS),
        since=SECONDS,
        pause=st.none() | st.integers(-5, 20),
    )
    def join(self, chat: ChatId, pool: Pool, since: int, pause: int | None) -> None:
        not_before = None if pause is None else self.now + timedelta(seconds=pause)
        entry = waiting(chat, since=since, pool=pool, not_before=not_before)
        known = self.expected.get(chat)
        self.line.join(entry)
        if known is None or known.entry != entry:
            self.order += 1
            self.expected[chat] = Expected(self.order, entry)

    @rule(seconds=SECONDS)
    def time_goes_by(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(open_pools=st.sets(st.sampled_from(POOLS)))
    def take(self, open_pools: set[Pool]) -> None:
        candidates = [
            place
            for place in self.expected.values()
            if place.is_ripe(self.now) and place.entry.pool in open_pools
        ]

        taken = self.line.take(self.now, lambda pool: pool in open_pools)

        if not candidates:
            assert taken is None
            return
        assert taken is not None
        assert taken.since == min(place.entry.since for place in candidates)
        assert taken == self.expected.pop(taken.chat).entry
        assert taken.pool in open_pools

    @rule()
    def empty(self) -> None:
        """Given time and room, everyone in the line has a turn, and only once."""
        self.now += timedelta(hours=1)
        taken = []
        while (entry := self.line.take(self.now, lambda _pool: True)) is not None:
            taken.append(entry)
        assert {entry.chat for entry in taken} == set(self.expected)
        assert len(taken) == len(self.expected)
        assert [entry.since for entry in taken] == sorted(entry.since for entry in taken)
        self.expected.clear()

    @invariant()
    def it_knows_who_waits(self) -> None:
        assert len(self.line) == len(self.expected)
        assert all((chat in self.line) == (chat in self.expected) for chat in CHATS)
        since = [place.entry.since for place in self.expected.values()]
        assert self.line.oldest() == min(since, default=None)

    @invariant()
    def it_knows_when_to_look_again(self) -> None:
        ripe = self.line.next_ripe()
        pauses = [
            place.entry.not_before
            for place in self.expected.values()
            if place.entry.not_before is not None and place.entry.not_before > self.now
        ]
        # It may still hold someone whose time has come; it must never sleep past anyone.
        assert min(pauses, default=None) is None or (ripe is not None and ripe <= min(pauses))


FairLine.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestFairLine = FairLine.TestCase


def test_chats_that_waited_equally_long_go_in_the_order_they_came() -> None:
    line = Line()
    for name in "cab":
        line.join(waiting(name))

    taken = [line.take(START, lambda _pool: True) for _ in range(3)]

    assert [entry.chat for entry in taken if entry] == ["c", "a", "b"]


def test_a_chat_that_changes_pools_waits_in_the_new_one_only() -> None:
    line = Line()
    line.join(waiting("a", pool=POOLS[0]))
    line.join(waiting("a", pool=POOLS[1]))

    assert line.take(START, lambda pool: pool == POOLS[0]) is None
    assert line.take(START, lambda pool: pool == POOLS[1]) is not None
    assert len(line) == 0
