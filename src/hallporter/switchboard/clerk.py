"""The clerk writes down each step of a turn: one transaction each, fenced by the turn's epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.coverage import Coverage
from hallporter.domain.ids import TurnId
from hallporter.domain.ladder import GiveUp, Park, Retry, after_failure, after_interruption
from hallporter.domain.message import OPEN_STATES, Kind, State
from hallporter.domain.reply import presentable
from hallporter.domain.turn import Outcome, Turn, What
from hallporter.switchboard.backlog import gather
from hallporter.switchboard.briefing import sent_since, to_batch
from hallporter.switchboard.outbound import Words
from hallporter.switchboard.progress import Opened, Progress, Written

if TYPE_CHECKING:
    from hallporter.books import Tx
    from hallporter.domain.brief import Batch, Block, LateBlock
    from hallporter.domain.chat import Chat
    from hallporter.domain.ids import ChatId, MessageId, NewId
    from hallporter.domain.ladder import Verdict
    from hallporter.ports import Clock, Engine
    from hallporter.switchboard.outbound import Outbound
    from hallporter.switchboard.record import Record
    from hallporter.switchboard.ticks import Ticks

_HOST_ENDED = "the host ended"
_TELL_AT = 2  # failures in a row after which the chat hears that we are still trying


class Clerk:
    """Every method but `stop` and `recover` takes the turn's epoch as its right to write. Turns
    that serve a tick are written by `Ticks`."""

    def __init__(
        self,
        *,
        engine: Engine,
        outbound: Outbound,
        record: Record,
        ticks: Ticks,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._engine = engine
        self._outbound = outbound
        self._record = record
        self._ticks = ticks
        self._clock = clock
        self._new_id = new_id

    def open(self, tx: Tx, chat_id: ChatId) -> Opened | None:
        """Claim the chat: a new epoch for the tick that waits, or else for the whole backlog."""
        stale = tx.turns.open_in(chat_id)
        if stale is not None:  # its own end could not be written: the store was away
            self._interrupt(tx, stale)
        chat = tx.chats.lock(chat_id)
        group = tx.groups.of_chat(chat_id)
        if group is None:
            self._abandon(tx, chat)
            return None
        if (opened := self._ticks.open(tx, chat, group)) is not None:
            return opened
        has_tick = tx.tasks.waiting_tick(chat_id) is not None
        if chat.due_at is not None and not has_tick:  # rung for a tick that is gone
            chat = replace(chat, due_at=None)
            tx.chats.save(chat)
            if chat.not_before is not None and chat.not_before > self._clock.now():
                self._engine.wake(tx, chat_id, chat.not_before)
                return None
        if chat.woken_at is None:  # piped, stopped or parked since: a late wake-up is no retry
            return None
        backlog = gather(tx, chat_id, chat.cursor)
        if backlog is None:
            self._let_wait(tx, chat_id, after=chat.cursor)
            tx.chats.save(replace(chat.settled(chat.cursor), woken_at=None))
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
        is_retry = chat.attempts or chat.interruptions or chat.is_parked
        earlier = tx.turns.given(chat_id, backlog.kept[0].seq) if is_retry else ()
        sent = sent_since(tx, chat, earlier)
        chat = replace(chat, epoch=turn.epoch, woken_at=None, not_before=None)
        tx.chats.save(chat)
        if backlog.omitted:
            self._mark(tx, turn, State.OMITTED, after=chat.cursor, through=backlog.after)
        self._mark(tx, turn, State.RUNNING, after=backlog.after, through=turn.piped)
        covers = tuple(message.id for message in backlog.kept)
        self._record.begin(tx, turn, after=backlog.after, covers=covers)
        if has_tick:
            self._engine.ring(tx, chat_id)  # it waits behind this turn
        batch = to_batch(backlog.kept, omitted=backlog.omitted)
        return Opened(turn=turn, chat=chat, group=group, batch=batch, sent=sent)

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
        self._record.note(tx, turn, What.PIPED, after=now.piped, through=through)
        tx.turns.save(replace(now, piped=through))
        tx.chats.save(replace(chat, woken_at=None))
        return to_batch(more.kept, omitted=more.omitted)

    def block(self, tx: Tx, turn: Turn, block: Block, progress: Progress) -> Written:
        """R1, R4, R5: the reply, the session and the moved cursor are one transaction."""
        if turn.task is not None:
            return self._ticks.block(tx, turn, block, progress)
        chat = tx.chats.hold(turn.chat, turn.epoch)
        now = tx.turns.get(turn.id) or turn
        coverage = Coverage(piped=now.piped, through=chat.cursor).take(block.through)
        moved = coverage.through > chat.cursor
        covers = (chat.cursor, coverage.through) if moved else progress.covers
        text = presentable(block.text)
        if moved:
            why = "" if text else "silent"
            self._record.note(tx, turn, What.BLOCK, after=covers[0], through=covers[1], why=why)
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
        if turn.task is not None:
            self._ticks.end(tx, turn, progress)
            return
        chat = tx.chats.hold(turn.chat, turn.epoch)
        now = tx.turns.get(turn.id) or turn
        self._mark(tx, turn, State.QUEUED, after=chat.cursor, through=now.piped)
        self._end(tx, now, chat, progress)

    def fail(self, tx: Tx, turn: Turn, why: str, *, is_refusal: bool) -> Verdict:
        """R14: what is covered stays covered; the rest comes again, waits, or is given up."""
        if turn.task is not None:
            self._ticks.fail(tx, turn, why)
            return GiveUp()
        chat = tx.chats.hold(turn.chat, turn.epoch)
        now = tx.turns.get(turn.id) or turn
        verdict = after_failure(
            attempts=chat.attempts, is_parked=chat.is_parked, is_refusal=is_refusal
        )
        self._record.close(tx, now, Outcome.FAILED, why, cursor=chat.cursor)
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
        self._record.publish(tx, now, Outcome.FAILED, tuple(failed))
        return verdict

    def stop(self, tx: Tx, turn: Turn, why: str) -> None:
        """R10: whoever still works writes under an epoch that no longer counts."""
        if turn.task is not None:
            self._ticks.stop(tx, turn, why)
        else:
            chat = tx.chats.lock(turn.chat)
            covered = tx.messages.mark(
                chat.id,
                after=chat.cursor,
                through=turn.piped,
                was=(State.RUNNING,),
                state=State.STOPPED,
                turn=turn.id,
            )
            self._record.close(tx, turn, Outcome.STOPPED, why, cursor=chat.cursor)
            chat = replace(chat.settled(turn.piped), epoch=chat.epoch + 1, woken_at=None)
            tx.chats.save(chat)
            self._wake_if_more(tx, chat.id, after=chat.cursor)
            self._record.publish(tx, turn, Outcome.STOPPED, tuple(covered))
        tx.after_commit(lambda: self._engine.signal(turn.chat, "stop"))

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
            self._interrupt(tx, turn)
        return len(turns)

    # --- steps that several of them share -----------------------------------------------------

    def _interrupt(self, tx: Tx, turn: Turn) -> None:
        if turn.task is not None:
            self._ticks.interrupt(tx, turn, _HOST_ENDED)
            return
        chat = tx.chats.lock(turn.chat)
        self._record.close(tx, turn, Outcome.INTERRUPTED, _HOST_ENDED, cursor=chat.cursor)
        verdict = after_interruption(interruptions=chat.interruptions)
        if isinstance(verdict, Park):
            self._mark(tx, turn, State.FAILED, after=chat.cursor, through=turn.piped)
            parked = replace(chat, interruptions=0, is_parked=True, woken_at=None, not_before=None)
            tx.chats.save(parked)
            again = "Your next message tries again."
            self._tell(tx, turn, f"I could not answer: the host ended each time I tried. {again}")
        else:
            self._mark(tx, turn, State.QUEUED, after=chat.cursor, through=turn.piped)
            tx.chats.save(replace(chat, interruptions=chat.interruptions + 1))
            self._engine.wake(tx, chat.id)

    def _abandon(self, tx: Tx, chat: Chat) -> None:
        """The chat is no longer registered: nobody will be given what waits in it."""
        self._ticks.skip(tx, chat.id, "the chat is not registered")
        tx.messages.mark(
            chat.id,
            after=chat.cursor,
            through=chat.head,
            was=OPEN_STATES,
            state=State.IGNORED,
            turn=None,
        )
        tx.chats.save(replace(chat, woken_at=None, not_before=None, due_at=None))

    def _end(self, tx: Tx, turn: Turn, chat: Chat, progress: Progress) -> None:
        outcome = Outcome.ANSWERED if progress.has_text else Outcome.SILENT
        self._record.close(tx, turn, outcome, "", cursor=chat.cursor)
        self._wake_if_more(tx, chat.id, after=chat.cursor)
        self._record.publish(tx, turn, outcome, progress.covered)

    def _wake_if_more(self, tx: Tx, chat: ChatId, *, after: int) -> None:
        if tx.messages.first_waking(chat, after) is not None:
            self._engine.wake(tx, chat)
        else:
            self._let_wait(tx, chat, after=after)

    def _let_wait(self, tx: Tx, chat: ChatId, *, after: int) -> None:
        """What only rode along with something that has its answer rides with the next that asks."""
        was = (State.QUEUED, State.RUNNING, State.FAILED)
        head = tx.chats.lock(chat).head
        tx.messages.mark(chat, after=after, through=head, was=was, state=State.WAITING, turn=None)

    def _tell(self, tx: Tx, turn: Turn, text: str) -> None:
        self._outbound.put(tx, Words(chat=turn.chat, key=f"notice:{turn.id}", text=text))

    def _mark(
        self, tx: Tx, turn: Turn, state: State, *, after: int, through: int
    ) -> list[MessageId]:
        marked = tx.messages.mark(
            turn.chat, after=after, through=through, was=OPEN_STATES, state=state, turn=turn.id
        )
        return list(marked)
