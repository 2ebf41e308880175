"""A message comes in: stored in one transaction, with the decision whether it wakes its chat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from hallporter.domain.chat import ChatSeen
from hallporter.domain.group import Others
from hallporter.domain.happening import MessageStored
from hallporter.domain.ids import MessageId
from hallporter.domain.message import Kind, Message, State
from hallporter.domain.slash import Slash, parse_slash
from hallporter.domain.trigger import wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.books import Tx
    from hallporter.domain.group import Group, SenderRule
    from hallporter.domain.ids import ChatId, NewId
    from hallporter.domain.message import Inbound
    from hallporter.ports import Channel, Clock, Engine, Feed, Store
    from hallporter.switchboard.slash_lines import SlashLines

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was stored; a repeat gives the row of the first time."""

    message: Message
    is_new: bool


class Intake:
    """`ports.Switchboard`: the two callbacks every channel gets."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        feed: Feed,
        clock: Clock,
        new_id: NewId,
        channel_of: Callable[[ChatId], Channel | None],
        slash_lines: SlashLines,
        senders_of: Callable[[Group], SenderRule | None],
    ) -> None:
        self._store = store
        self._engine = engine
        self._feed = feed
        self._clock = clock
        self._new_id = new_id
        self._channel_of = channel_of
        self._slash_lines = slash_lines
        self._senders_of = senders_of

    async def on_chat(self, what: ChatSeen) -> None:
        await self._store.write(lambda tx: tx.chats.seen(what))

    async def on_message(self, message: Inbound) -> None:
        await self.accept(message)

    async def accept(self, inbound: Inbound) -> Accepted:
        """Durable when it returns; handing the same message in again is harmless."""
        inbound = replace(
            inbound,
            text=_storable(inbound.text),
            sender_name=_storable(inbound.sender_name),
            sender=_storable_id(inbound.sender),
            ext_id=_storable_id(inbound.ext_id),
        )
        accepted = await self._store.write(lambda tx: self._accept(tx, inbound))
        log.info(
            _event(accepted),
            chat=inbound.chat,
            message=accepted.message.id,
            state=str(accepted.message.state),
        )
        return accepted

    def _accept(self, tx: Tx, inbound: Inbound) -> Accepted:
        channel = self._channel_of(inbound.chat)
        name = channel.name if channel is not None else ""
        # A network's clock may run ahead of ours.
        at = min(inbound.sent_at, self._clock.now())
        tx.chats.seen(ChatSeen(chat=inbound.chat, channel=name, at=at))
        # The row's lock before the look: another writer may be storing the same message now.
        tx.chats.lock(inbound.chat)
        repeat = tx.messages.repeat_of(inbound.chat, inbound.sender, inbound.ext_id)
        if repeat is not None:
            return Accepted(repeat, is_new=False)
        if (own := self._own(tx, inbound)) is not None:
            return Accepted(own, is_new=False)
        seq = tx.chats.raise_head(inbound.chat)
        group = tx.groups.of_chat(inbound.chat)
        message = self._judge(group, replace(inbound, sent_at=at), self._id_for(tx, inbound), seq)
        tx.messages.add(message)
        if message.kind is Kind.COMMAND and group is not None:
            slash = parse_slash(inbound.text, group.trigger) or Slash.HELP
            self._slash_lines.carry_out(tx, slash, message, group)
        elif message.wakes:
            # In backoff the ladder keeps its pace, or a lively chat would burn it in seconds.
            self._engine.wake(tx, inbound.chat, tx.chats.lock(inbound.chat).not_before)
        news = MessageStored(chat=message.chat, seq=message.seq, is_bot=False)
        tx.after_commit(lambda: self._feed.publish(news))
        return Accepted(message, is_new=True)

    def _own(self, tx: Tx, inbound: Inbound) -> Message | None:
        """Our own words, handed back by the network: known by their id, whatever they say."""
        message = tx.outbox.said_as(inbound.chat, inbound.ext_id)
        return None if message is None else tx.messages.get(message)

    def _id_for(self, tx: Tx, inbound: Inbound) -> MessageId:
        preferred = inbound.preferred_id
        if preferred is not None and tx.messages.get(preferred) is None:
            return preferred
        return MessageId(self._new_id("m"))

    def _judge(self, group: Group | None, inbound: Inbound, id_: MessageId, seq: int) -> Message:
        message = Message(
            id=id_,
            chat=inbound.chat,
            seq=seq,
            ext_id=inbound.ext_id,
            sender=inbound.sender,
            sender_name=inbound.sender_name,
            text=inbound.text,
            at=inbound.sent_at,
            kind=Kind.TEXT,
        )
        if group is None:
            why = "the chat is not registered"
            return replace(message, text="", state=State.UNREGISTERED, why=why)
        rule = self._senders_of(group)
        if rule is not None and not rule.allows(inbound.sender):
            return _of_another(message, rule.others)
        if not inbound.text.strip():
            return replace(message, state=State.IGNORED, why="it has no text")
        if parse_slash(inbound.text, group.trigger) is not None:
            return replace(message, kind=Kind.COMMAND, state=State.COMMAND, why="a slash line")
        decision = wake(group, inbound)
        state = State.QUEUED if decision.wakes else State.WAITING
        return replace(message, state=state, wakes=decision.wakes, why=decision.why)


def _of_another(message: Message, others: Others) -> Message:
    """Not one of those whose words count: no trigger, mention or slash line changes that."""
    why = "the sender is not allowed in this group"
    if others is Others.IGNORE or not message.text.strip():
        return replace(message, text="", state=State.IGNORED, why=why)
    why += ": it goes along with what someone who is says"
    return replace(message, state=State.WAITING, why=why)


def _event(accepted: Accepted) -> str:
    if accepted.is_new:
        return "message.accepted"
    return "message.own" if accepted.message.is_bot else "message.repeated"


def _storable(text: str) -> str:
    """Without what a database cannot hold: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def _storable_id(name: str) -> str:
    """The same for a network's id, which must stay different from every other one."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
