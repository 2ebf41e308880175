"""What people say to the host itself, carried out in the transaction that stores the line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.errors import AgentRefusedError
from hallporter.domain.message import State
from hallporter.domain.slash import SAYS, Slash
from hallporter.domain.trigger import default_trigger
from hallporter.switchboard.outbound import Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.books import Tx
    from hallporter.domain.brief import AgentSettings
    from hallporter.domain.group import Group
    from hallporter.domain.ids import ChatId
    from hallporter.domain.message import Message
    from hallporter.ports import Clock, Engine
    from hallporter.switchboard.clerk import Clerk
    from hallporter.switchboard.outbound import Outbound


class SlashLines:
    """`/help /status /stop /new /whoami`, for everyone who may talk in the chat."""

    def __init__(
        self,
        *,
        engine: Engine,
        outbound: Outbound,
        clerk: Clerk,
        clock: Clock,
        agent_of: Callable[[Group], AgentSettings],
        close_warm: Callable[[ChatId], None],
        assistant_name: str,
    ) -> None:
        self._engine = engine
        self._outbound = outbound
        self._clerk = clerk
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
        name = self._name(group)
        needs = group.requires_trigger and not group.is_main
        # A name that is no single word makes a pattern, which nobody should have to read.
        trigger = f"@{name}" if group.trigger == default_trigger(name) else group.trigger
        how = f"Begin a message with `{trigger}`" if needs else "Write a message"
        return "\n".join([f"{how} and {name} answers. I also understand:", *lines])

    def _status(self, tx: Tx, group: Group) -> str:
        chat = tx.chats.lock(group.chat)
        health = self._engine.health()
        turn = tx.turns.open_in(group.chat)
        if turn is not None:
            seconds = round((self._clock.now() - turn.started_at).total_seconds())
            what = "an answer is being made" if turn.task is None else "a task is being done"
            doing = f"{what}, for {seconds} s"
        elif chat.due_at is not None:
            doing = "a task waits for its turn"
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
        """R10: in the transaction that stores the line."""
        tx.chats.lock(line.chat)
        turn = tx.turns.open_in(line.chat)
        if turn is None:
            return self._drop_waiting(tx, line)
        self._clerk.stop(tx, turn, "/stop")
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
        return f"A fresh session begins: {self._name(group)} no longer remembers what was said."

    def _name(self, group: Group) -> str:
        return group.assistant_name or self._assistant_name


def _whoami(line: Message, group: Group) -> str:
    return "\n".join(
        [
            f"You are **{line.sender_name}**.",
            f"- known as: `{line.sender}`",
            f"- chat: `{line.chat}`, group: {group.name}",
        ]
    )
