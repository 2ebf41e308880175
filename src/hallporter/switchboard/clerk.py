"""The clerk writes down each step of a turn: one transaction each, fenced by the turn's epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hallporter.domain.coverage import Coverage
from hallporter.domain.happening import TurnChanged
from hallporter.domain.ids import TurnId
from hallporter.domain.ladder import GiveUp, Park, Retry, after_failure, after_interruption
from hallporter.domain.message import OPEN_STATES, Kind, State
from hallporter.domain.reply import presentable
from hallporter.domain.turn import Note, Outcome, Turn, What
from hallporter.switchboard.backlog import gather
from hallporter.switchboard.briefing import to_batch
from hallporter.switchboard.outbound import Words

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.brief import Batch, Block, LateBlock
    from hallporter.domain.chat import Chat
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId, MessageId, NewId
    from hallporter.domain.ladder import Verdict
    from hallporter.ports import Clock, Engine, Feed
    from hallporter.switchboard.outbound import Outbound

_TELL_AT = 2  # failures in a row after which the chat hears that we are still trying


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A chat was claimed: this turn, this group, this much to say."""

    turn: Turn
    chat: Chat
    group: Group
    batch: Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a turn's answers have come; each block makes the next one."""

    blocks: int = 0
    has_success: bool = False
    has_text: bool = False
    covers: tuple[int, int] = (0, 0)  # of the last block that covered something
    covered: tuple[MessageId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a block's transaction did."""

    progress: Progress
    is_end: bool
    keeps_session: bool  # False: someone began a new session, so the agent must go


class Clerk:
    """Every method but `recover` takes the turn's epoch as its right to write."""

    def __init__(
        self, *, engine: Engine, outbound: Outbound, feed: Feed, clock: Clock, new_id: NewId
    ) -> None:
        self._engine = engine
        self._outbound = outbound
        self._feed = feed
        self._clock = clock
        self._new_id = new_id

    def open(self, tx: Tx, chat_id: ChatId) -> Opened | None:
        """Claim the chat: a new epoch, and all that waits goes into one batch."""
        chat = tx.chats.lock(chat_id)
        stale = tx.turns.open_in(chat_id)
        if stale is not None:  # its own end could not be written: the store was away
            chat = self._interrupt(tx, chat, stale)
        if chat.woken_at is None:  # piped, stopped or parked since: a late wake-up is no retry
            return None
        backlog = gather(tx, chat_id, chat.cursor)
        group = tx.groups.of_chat(chat_id)
        if group is None or backlog is None:
            if group is None:
                self._abandon(tx, chat)
            tx.chats.save(replace(chat, woken_at=None, not_before=None))
            return None
        turn = Turn(
            id=TurnId(self._new_id("t")),
            chat=chat_id,
            epoch=chat.epoch + 1,
            attempt=chat.attempts + 1,
            session_no=chat.session_no,
            waiting_since=chat.woken_at,
            started_at=self._clock.now(),
            cursor=chat.cursor,
            piped=backlog.kept[-1].seq,
        )
        chat = replace(chat, epoch=turn.epoch, woken_at=None, not_before=None)
        tx.chats.save(chat)
        tx.turns.add(turn)
        if backlog.omitted:
            self._mark(tx, turn, State.OMITTED, after=chat.cursor, through=backlog.after)
        self._mark(tx, turn, State.RUNNING, after=backlog.after, through=turn.piped)
        self._note(tx, turn, What.GIVEN, after=backlog.after, through=turn.piped)
        news = TurnChanged(
            chat=chat_id,
            turn=turn.id,
            state="started",
            covers=tuple(message.id for message in backlog.kept),
            waited=turn.started_at - turn.waiting_since,
        )
        tx.after_commit(lambda: self._feed.publish(news))
        batch = to_batch(backlog.kept, omitted=backlog.omitted)
        return Opened(turn=turn, chat=chat, group=group, batch=batch)

    def pipe(self, tx: Tx, turn: Turn) -> Batch | None:
        """R6: if something new asks for an answer, all that is new goes into the running agent."""
        chat = tx.chats.hold(turn.chat, turn.epoch)
        now = tx.turns.get(turn.id)
        if now is None or now.outcome is not None:
            return None  # the turn has ended: its end has woken the chat again
        more = gather(tx, turn.chat, now.piped)
        if more is None:
            return None
        if more.omitted:
            self._mark(tx, turn, State.OMITTED, after=now.piped, through=more.after)
        through = more.kept[-1].seq
        self._mark(tx, turn, State.RUNNING, after=now.piped, through=through)
        self._note(tx, turn, What.PIPED, after=now.piped, through=through)
        tx.turns.save(replace(now, piped=through))
        tx.chats.save(replace(chat, woken_at=None))
        return to_batch(more.kept, omitted=more.omitted)

    def block(self, tx: Tx, turn: Turn, block: Block, progress: Progress) -> Written:
        """R1, R4, R5: the reply, the session and the moved cursor are one transaction."""
        chat = tx.chats.hold(turn.chat, turn.epoch)
        now = tx.turns.get(turn.id) or turn
        coverage = Coverage(piped=now.piped, through=chat.cursor).take(block.through)
        moved = coverage.through > chat.cursor
        covers = (chat.cursor, coverage.through) if moved else progress.covers
        text = presentable(block.text)
        if moved:
            why = "" if text else "silent"
            self._note(tx, turn, What.BLOCK, after=covers[0], through=covers[1], why=why)
        if text:
            words = Words(
                chat=turn.chat,
                key=f"turn:{turn.id}:{progress.blocks}",
                text=text,
                kind=Kind.REPLY,
                turn=turn.id,
                covers=covers,
            )
            self._outbound.put(tx, words)
        state = State.ANSWERED if text else State.SILENT
        was = (State.RUNNING, State.SILENT) if text else (State.RUNNING,)
        covered = tx.messages.mark(
            turn.chat, after=covers[0], through=covers[1], was=was, state=state, turn=turn.id
        )
        keeps_session = chat.session_no == turn.session_no
        if keeps_session and block.session_id:
            chat = replace(chat, session_id=block.session_id)
        chat = chat.settled(coverage.through)
        tx.chats.save(chat)
        progress = Progress(
            blocks=progress.blocks + 1,
            has_success=True,
            has_text=progress.has_text or bool(text),
            covers=covers,
            covered=(*progress.covered, *(m for m in covered if m not in progress.covered)),
        )
        is_end = coverage.is_complete and block.idle
        if is_end:
            self._end(tx, now, chat, progress)
        return Written(progress=progress, is_end=is_end, keeps_session=keeps_session)

    def end(self, tx: Tx, turn: Turn, progress: Progress) -> None:
        """An exit that is no failure (R5): what was left lying is a new turn at once."""
        chat = tx.chats.hold(turn.chat, turn.epoch)
        now = tx.turns.get(turn.id) or turn
        self._mark(tx, turn, State.QUEUED, after=chat.cursor, through=now.piped)
        self._end(tx, now, chat, progress)

    def fail(self, tx: Tx, turn: Turn, why: str, *, is_refusal: bool) -> Verdict:
        """R14: what is covered stays covered; the rest comes again, waits, or is given up."""
        chat = tx.chats.hold(turn.chat, turn.epoch)
        now = tx.turns.get(turn.id) or turn
        verdict = after_failure(
            attempts=chat.attempts, is_parked=chat.is_parked, is_refusal=is_refusal
        )
        self._close(tx, now, chat, Outcome.FAILED, why)
        state = State.GAVE_UP if isinstance(verdict, GiveUp) else State.FAILED
        failed = self._mark(tx, now, state, after=chat.cursor, through=now.piped)
        match verdict:
            case Retry(attempts=attempts, after=delay):
                tx.chats.save(replace(chat, attempts=attempts))
                self._engine.wake(tx, chat.id, self._clock.now() + delay)
                if attempts == _TELL_AT:
                    self._tell(tx, now, f"I have no answer yet: {why}. I am trying again.")
            case Park():
                tx.chats.save(replace(chat, attempts=0, is_parked=True))
                again = "Your next message tries again."
                self._tell(tx, now, f"I could not answer: {why}. {again}")
                self._wake_if_more(tx, chat.id, after=now.piped)
            case GiveUp():
                tx.chats.save(chat.settled(now.piped))
                self._tell(tx, now, f"I could not answer and have given up on this: {why}.")
                self._wake_if_more(tx, chat.id, after=now.piped)
        self._publish(tx, now, "failed", tuple(failed))
        return verdict

    def late(self, tx: Tx, late: LateBlock) -> None:
        """R8: words after the turn's end still reach the chat; the cursor stays."""
        tx.chats.hold(late.chat, late.epoch)
        if text := presentable(late.text):
            key = f"late:{late.agent}:{late.number}"
            self._outbound.put(tx, Words(chat=late.chat, key=key, text=text, kind=Kind.REPLY))

    def recover(self, tx: Tx) -> int:
        """At start: what an ended host left open runs again at once (R14)."""
        turns = tx.turns.unfinished()
        for turn in turns:
            chat = self._interrupt(tx, tx.chats.lock(turn.chat), turn)
            if chat.woken_at is not None:
                self._engine.wake(tx, chat.id)
        return len(turns)

    # --- steps that several of them share -----------------------------------------------------

    def _interrupt(self, tx: Tx, chat: Chat, turn: Turn) -> Chat:
        self._close(tx, turn, chat, Outcome.INTERRUPTED, "the host ended")
        verdict = after_interruption(interruptions=chat.interruptions)
        if isinstance(verdict, Park):
            self._mark(tx, turn, State.FAILED, after=chat.cursor, through=turn.piped)
            chat = replace(chat, interruptions=0, is_parked=True, woken_at=None, not_before=None)
            again = "Your next message tries again."
            self._tell(tx, turn, f"I could not answer: the host ended each time I tried. {again}")
        else:
            self._mark(tx, turn, State.QUEUED, after=chat.cursor, through=turn.piped)
            chat = replace(chat, interruptions=chat.interruptions + 1).woken(self._clock.now())
        tx.chats.save(chat)
        return chat

    def _abandon(self, tx: Tx, chat: Chat) -> None:
        tx.messages.mark(
            chat.id,
            after=chat.cursor,
            through=chat.head,
            was=OPEN_STATES,
            state=State.IGNORED,
            turn=None,
        )

    def _end(self, tx: Tx, turn: Turn, chat: Chat, progress: Progress) -> None:
        outcome = Outcome.ANSWERED if progress.has_text else Outcome.SILENT
        self._close(tx, turn, chat, outcome, "")
        self._wake_if_more(tx, chat.id, after=chat.cursor)
        self._publish(tx, turn, str(outcome), progress.covered)

    def _close(self, tx: Tx, turn: Turn, chat: Chat, outcome: Outcome, why: str) -> None:
        tx.turns.save(replace(turn, ended_at=self._clock.now(), outcome=outcome, why=why))
        self._note(tx, turn, What.ENDED, after=chat.cursor, through=turn.piped, why=why)

    def _wake_if_more(self, tx: Tx, chat: ChatId, *, after: int) -> None:
        if tx.messages.first_waking(chat, after) is not None:
            self._engine.wake(tx, chat)

    def _publish(self, tx: Tx, turn: Turn, state: str, covers: tuple[MessageId, ...]) -> None:
        took = self._clock.now() - turn.started_at
        news = TurnChanged(chat=turn.chat, turn=turn.id, state=state, covers=covers, took=took)
        tx.after_commit(lambda: self._feed.publish(news))

    def _tell(self, tx: Tx, turn: Turn, text: str) -> None:
        self._outbound.put(tx, Words(chat=turn.chat, key=f"notice:{turn.id}", text=text))

    def _mark(
        self, tx: Tx, turn: Turn, state: State, *, after: int, through: int
    ) -> list[MessageId]:
        marked = tx.messages.mark(
            turn.chat, after=after, through=through, was=OPEN_STATES, state=state, turn=turn.id
        )
        return list(marked)

    def _note(
        self, tx: Tx, turn: Turn, what: What, *, after: int, through: int, why: str = ""
    ) -> None:
        at = self._clock.now()
        tx.turns.note(Note(turn=turn.id, at=at, what=what, after=after, through=through, why=why))
