"""Turns that serve a tick: what they write of the tick, of its task, and of nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.brief import Batch
from hallporter.domain.ids import TurnId
from hallporter.domain.message import Kind
from hallporter.domain.reply import presentable
from hallporter.domain.task import (
    LATE_AFTER,
    MAX_FAILURES,
    MAX_INTERRUPTIONS,
    Status,
    TickState,
    excerpt,
)
from hallporter.domain.turn import Outcome, Turn, What
from hallporter.switchboard.briefing import sent_since
from hallporter.switchboard.outbound import Words
from hallporter.switchboard.progress import Opened, Progress, Written
from hallporter.switchboard.tasks import known_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.books import Tx
    from hallporter.domain.brief import Block
    from hallporter.domain.chat import Chat
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId, NewId, TaskId
    from hallporter.domain.task import Tick
    from hallporter.ports import Clock, Engine
    from hallporter.switchboard.outbound import Outbound
    from hallporter.switchboard.record import Record


class Ticks:
    """The clerk's verbs for a tick. The chat's cursor and ladder belong to its messages: they are
    never touched here, and what waited before the tick still waits behind it."""

    def __init__(
        self,
        *,
        engine: Engine,
        outbound: Outbound,
        record: Record,
        clock: Clock,
        new_id: NewId,
        pause: Callable[[Tx, TaskId], object],
    ) -> None:
        self._engine = engine
        self._outbound = outbound
        self._record = record
        self._clock = clock
        self._new_id = new_id
        self._pause = pause

    def open(self, tx: Tx, chat: Chat, group: Group) -> Opened | None:
        """A turn for the tick that has waited longest; None when none waits, or when it is the
        backlog's turn."""
        tick = self._next(tx, group)
        if tick is None or self._lets_pass(tx, chat):
            return None
        now = self._clock.now()
        task = replace(known_task(tx, tick.task), last_at=now)
        turn = Turn(
            id=TurnId(self._new_id("t")),
            chat=chat.id,
            epoch=chat.epoch + 1,
            attempt=tick.attempts + 1,
            session_no=chat.session_no,
            waiting_since=chat.due_at or now,
            started_at=now,
            cursor=chat.cursor,
            piped=chat.cursor,
            task=tick.task,
            due=tick.due,
        )
        sent = sent_since(tx, chat, tx.turns.of_tick(chat.id, tick)) if tick.attempts else ()
        chat = replace(chat, epoch=turn.epoch, due_at=None)
        tx.chats.save(chat)
        tx.tasks.save(task)
        tx.tasks.save_tick(
            replace(tick, state=TickState.RUNNING, started_at=now, attempts=turn.attempt)
        )
        self._record.begin(tx, turn, after=turn.piped)
        batch = Batch(lines=(), through=turn.piped)
        return Opened(turn=turn, chat=chat, group=group, batch=batch, task=task, sent=sent)

    def skip(self, tx: Tx, chat: ChatId, why: str) -> None:
        """Nobody is there to serve what waits."""
        while (tick := tx.tasks.waiting_tick(chat)) is not None:
            tx.tasks.save_tick(replace(tick, state=TickState.SKIPPED, why=why))

    def block(self, tx: Tx, turn: Turn, block: Block, progress: Progress) -> Written:
        """The first one is the tick's answer: from here on it does not run again."""
        chat = tx.chats.hold(turn.chat, turn.epoch)
        if not progress.has_success:
            self._succeed(tx, turn)
        text = presentable(block.text)
        if text:
            key = f"turn:{turn.id}:{progress.blocks}"
            words = Words(chat=turn.chat, key=key, text=text, kind=Kind.REPLY, turn=turn.id)
            self._outbound.put(tx, words)
        why = "" if text else "silent"
        self._record.note(tx, turn, What.BLOCK, after=turn.piped, through=turn.piped, why=why)
        keeps_session = chat.session_no == turn.session_no
        if keeps_session and block.session_id:
            tx.chats.save(replace(chat, session_id=block.session_id))
        progress = replace(
            progress,
            blocks=progress.blocks + 1,
            has_success=True,
            has_text=progress.has_text or bool(text),
        )
        if block.idle:
            self.end(tx, turn, progress)
        return Written(progress=progress, is_end=block.idle, keeps_session=keeps_session)

    def end(self, tx: Tx, turn: Turn, progress: Progress) -> None:
        """The agent is idle or gone, and has answered."""
        tx.chats.hold(turn.chat, turn.epoch)
        self._finish(tx, turn)
        outcome = Outcome.ANSWERED if progress.has_text else Outcome.SILENT
        self._close(tx, turn, outcome, "")

    def fail(self, tx: Tx, turn: Turn, why: str) -> None:
        """Before its first words the tick has failed; behind them it stays as it is."""
        tx.chats.hold(turn.chat, turn.epoch)
        if (tick := self._running(tx, turn)) is None:
            self._finish(tx, turn, f"failed behind its answer: {why}")
        else:
            self._fail(tx, turn, tick, why)
        self._close(tx, turn, Outcome.FAILED, why)

    def stop(self, tx: Tx, turn: Turn, why: str) -> None:
        """Someone wished it: no fault of the task's."""
        chat = tx.chats.lock(turn.chat)
        tx.chats.save(replace(chat, epoch=chat.epoch + 1))
        if (tick := self._running(tx, turn)) is None:
            self._finish(tx, turn, "stopped behind its answer")
        else:
            self._settle(tx, tick, TickState.FAILED, "stopped")
        self._close(tx, turn, Outcome.STOPPED, why)

    def interrupt(self, tx: Tx, turn: Turn, why: str) -> None:
        """Cut down before its first words it runs again, and its row says so."""
        if (tick := self._running(tx, turn)) is None:
            self._finish(tx, turn, f"{why} behind its answer")
        elif tick.attempts >= MAX_INTERRUPTIONS:
            self._fail(tx, turn, tick, f"{why} each time it ran")
        else:
            tx.tasks.save_tick(replace(tick, state=TickState.DUE, why=f"run again: {why}"))
        self._close(tx, turn, Outcome.INTERRUPTED, why)

    def _next(self, tx: Tx, group: Group) -> Tick | None:
        while (tick := tx.tasks.waiting_tick(group.chat)) is not None:
            if known_task(tx, tick.task).folder == group.folder:
                return tick
            # The chat was registered anew: another folder is none of the task's business.
            tx.tasks.save_tick(replace(tick, state=TickState.SKIPPED, why="its group is gone"))
        return None

    def _lets_pass(self, tx: Tx, chat: Chat) -> bool:
        """One tick goes before the same backlog, whichever task's: however many tasks there are,
        and however many more they make, people wait for two runs at most."""
        if chat.woken_at is None or tx.messages.first_waking(chat.id, chat.cursor) is None:
            return False
        ripe_at = max(chat.woken_at, chat.not_before or chat.woken_at)
        last = tx.turns.last_in(chat.id)
        return last is not None and last.task is not None and last.started_at > ripe_at

    # --- the tick and its task ----------------------------------------------------------------

    def _succeed(self, tx: Tx, turn: Turn) -> None:
        if (tick := self._running(tx, turn)) is None:
            return  # the task was cancelled meanwhile
        is_late = tick.lateness is not None and tick.lateness > LATE_AFTER
        tx.tasks.save_tick(replace(tick, state=TickState.LATE if is_late else TickState.RAN))
        task = tx.tasks.get(tick.task)
        if task is not None and task.failures:
            tx.tasks.save(replace(task, failures=0))

    def _fail(self, tx: Tx, turn: Turn, tick: Tick, why: str) -> None:
        self._settle(tx, tick, TickState.FAILED, why)
        task = tx.tasks.get(tick.task)
        if task is None:
            return
        task = replace(task, failures=task.failures + 1)
        tx.tasks.save(task)
        what = f'The task "{excerpt(task.prompt)}"'
        reason = why.rstrip(".")
        if task.failures >= MAX_FAILURES and task.status is Status.ACTIVE:
            self._pause(tx, task.id)
            text = f"{what} failed {task.failures} times in a row and is paused now: {reason}."
        else:
            text = f"{what} failed: {reason}."
        self._outbound.put(tx, Words(chat=turn.chat, key=f"notice:{turn.id}", text=text))

    def _running(self, tx: Tx, turn: Turn) -> Tick | None:
        tick = _tick_of(tx, turn)
        return tick if tick is not None and tick.state is TickState.RUNNING else None

    def _finish(self, tx: Tx, turn: Turn, why: str = "") -> None:
        if (tick := _tick_of(tx, turn)) is not None:
            self._settle(tx, tick, tick.state, why or tick.why)

    def _settle(self, tx: Tx, tick: Tick, state: TickState, why: str) -> None:
        tx.tasks.save_tick(replace(tick, state=state, why=why, ended_at=self._clock.now()))

    # --- the turn -----------------------------------------------------------------------------

    def _close(self, tx: Tx, turn: Turn, outcome: Outcome, why: str) -> None:
        self._record.close(tx, turn, outcome, why, cursor=turn.piped)
        chat = tx.chats.lock(turn.chat)
        if chat.woken_at is not None:  # the claim took it out of the line
            self._engine.wake(tx, chat.id, chat.not_before)
        if tx.tasks.waiting_tick(chat.id) is not None:
            self._engine.ring(tx, chat.id)
        if outcome is not Outcome.INTERRUPTED:
            self._record.publish(tx, turn, outcome)


def _tick_of(tx: Tx, turn: Turn) -> Tick | None:
    if turn.task is None or turn.due is None:
        return None
    return tx.tasks.tick(turn.task, turn.due)
