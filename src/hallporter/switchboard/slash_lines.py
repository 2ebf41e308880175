"""What people say to the host itself, carried out in the transaction that stores the line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentRefusedError
from hallporter.domain.happening import TurnChanged
from hallporter.domain.message import State
from hallporter.domain.slash import SAYS, Slash
from hallporter.domain.turn import Note, Outcome, What
from hallporter.switchboard.outbound import Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.books import Tx
    from hallporter.domain.brief import AgentSettings
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId
    from hallporter.domain.message import Message
    from hallporter.ports import Clock, Engine, Feed
    from hallporter.switchboard.outbound import Outbound


class SlashLines:
    """`/help /status /stop /new /whoami`, for everyone who may talk in the chat."""

    def __init__(
        self,
        *,
        engine: Engine,
        outbound: Outbound,
        feed: Feed,
        clock: Clock,
        agent_of: Callable[[Group], AgentSettings],
        close_warm: Callable[[ChatId], None],
        assistant_name: str,
    ) -> None:
        self._engine = engine
        self._outbound = outbound
        self._feed = feed
        self._clock = clock
        self._agent_of = agent_of
        self._close_warm = close_warm
        self._assistant_name = assistant_name

    def carry_out(self, tx: Tx, slash: Slash, line: Message, group: Group) -> None:
        """Do it, and say in the chat what was done; both with the line itself, or not at all."""
        text = self._answer(tx, slash, line, group)
        self._outbound.put(tx, Words(chat=line.chat, key=f"notice:{line.id}", text=text))

    def _answer(self, tx: Tx, slash: Slash, line: Message, group: Group) -> str:
        match slash:
            case Slash.HELP:
                return self._help(group)
            case Slash.STATUS:
                return self._status(tx, group)
            case Slash.STOP:
                return self._stop(tx, line)
            case Slash.NEW:
                return self._new(tx, group)
            case Slash.WHOAMI:
                return _whoami(line, group)

    def _help(self, group: Group) -> str:
        lines = [f"- `/{word}`: {says}" for word, says in SAYS.items()]
        needs = group.requires_trigger and not group.is_main
        how = f"Begin a message with `{group.trigger}`" if needs else "Write a message"
        return "\n".join([f"{how} and {self._assistant_name} answers. I also understand:", *lines])

    def _status(self, tx: Tx, group: Group) -> str:
        chat = tx.chats.lock(group.chat)
        health = self._engine.health()
        turn = tx.turns.open_in(group.chat)
        if turn is not None:
            seconds = round((self._clock.now() - turn.started_at).total_seconds())
            doing = f"an answer is being made, for {seconds} s"
        elif chat.is_parked:
            doing = "the last tries failed; your next message tries again"
        elif chat.woken_at is not None:
            doing = "a message waits for its turn"
        else:
            doing = "nothing is waiting"
        return "\n".join(
            [
                f"**{group.name}**: {doing}.",
                f"- {self._who(group)}",
                f"- in the whole house: {health.running} running, {health.waiting} waiting",
            ]
        )

    def _who(self, group: Group) -> str:
        try:
            settings = self._agent_of(group)
        except AgentRefusedError as error:
            return f"the agent cannot be started: {error.message}"
        return f"agent: {settings.kind}, sandbox: {settings.sandbox}"

    def _stop(self, tx: Tx, line: Message) -> str:
        """R10: one transaction; whoever still works writes under an epoch that no longer counts."""
        now = self._clock.now()
        chat = tx.chats.lock(line.chat)
        turn = tx.turns.open_in(line.chat)
        if turn is None:
            return self._drop_waiting(tx, line)
        covered = tx.messages.mark(
            chat.id,
            after=chat.cursor,
            through=turn.piped,
            was=(State.RUNNING,),
            state=State.STOPPED,
            turn=turn.id,
        )
        tx.turns.save(replace(turn, outcome=Outcome.STOPPED, ended_at=now, why="/stop"))
        tx.turns.note(
            Note(
                turn=turn.id,
                at=now,
                what=What.ENDED,
                after=chat.cursor,
                through=turn.piped,
                why="/stop",
            )
        )
        chat = replace(chat.settled(turn.piped), epoch=chat.epoch + 1, woken_at=None)
        tx.chats.save(chat)
        if tx.messages.first_waking(chat.id, chat.cursor) is not None:
            self._engine.wake(tx, chat.id)
        news = TurnChanged(
            chat=chat.id,
            turn=turn.id,
            state="stopped",
            covers=tuple(covered),
            took=now - turn.started_at,
        )
        tx.after_commit(lambda: self._feed.publish(news))
        tx.after_commit(lambda: self._engine.signal(chat.id, "stop"))
        return "Stopped."

    def _drop_waiting(self, tx: Tx, line: Message) -> str:
        chat = tx.chats.lock(line.chat)
        dropped = tx.messages.mark(
            chat.id,
            after=chat.cursor,
            through=line.seq,
            was=(State.QUEUED, State.FAILED),
            state=State.STOPPED,
            turn=None,
        )
        if not dropped:
            return "Nothing is running."
        tx.chats.save(replace(chat.settled(chat.cursor), woken_at=None))
        return "Stopped: what was waiting will not be answered."

    def _new(self, tx: Tx, group: Group) -> str:
        chat = tx.chats.lock(group.chat)
        tx.chats.save(chat.renewed())
        tx.after_commit(lambda: self._close_warm(group.chat))
        return f"A fresh session begins: {self._assistant_name} no longer remembers what was said."


def _whoami(line: Message, group: Group) -> str:
    return "\n".join(
        [
            f"You are **{line.sender_name}**.",
            f"- known as: `{line.sender}`",
            f"- chat: `{line.chat}`, group: {group.name}",
        ]
    )
