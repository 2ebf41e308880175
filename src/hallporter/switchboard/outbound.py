"""Putting words into the outbox: the transcript's row and what is to be sent, in one write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallporter.domain.enclosure import mentioning
from hallporter.domain.happening import MessageStored
from hallporter.domain.ids import MessageId
from hallporter.domain.message import Kind, Message
from hallporter.domain.outbox import Outgoing, Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.books import Tx
    from hallporter.domain.enclosure import Enclosure
    from hallporter.domain.ids import ChatId, NewId, TurnId
    from hallporter.ports import Channel, Clock, Feed

_NOT_HERE = "(file {} could not be sent here)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What we say to a chat. `key` makes it once: the same key again writes nothing."""

    chat: ChatId
    key: str
    text: str
    kind: Kind = Kind.NOTICE
    why: str = ""
    turn: TurnId | None = None
    covers: tuple[int, int] | None = None  # the messages it answers, (after, through]
    files: tuple[Enclosure, ...] = ()


class Outbound:
    """The way out, as far as a transaction goes; delivery does the rest."""

    def __init__(
        self,
        *,
        channel_of: Callable[[ChatId], Channel | None],
        wake_delivery: Callable[[ChatId], None],
        feed: Feed,
        clock: Clock,
        new_id: NewId,
        speaker: str,
    ) -> None:
        self._channel_of = channel_of
        self._wake_delivery = wake_delivery
        self._feed = feed
        self._clock = clock
        self._new_id = new_id
        self._speaker = speaker

    def put(self, tx: Tx, words: Words) -> MessageId | None:
        """None when the key is known: it was said before."""
        if tx.outbox.has(words.key):
            return None
        now = self._clock.now()
        speaker = self._speaker_in(tx, words.chat)
        message = Message(
            id=MessageId(self._new_id("m")),
            chat=words.chat,
            seq=tx.chats.raise_head(words.chat),
            ext_id=words.key,
            sender=speaker,
            sender_name=speaker,
            text=words.text,
            at=now,
            kind=words.kind,
            why=words.why,
            turn=words.turn,
            covers_after=words.covers[0] if words.covers else None,
            covers_through=words.covers[1] if words.covers else None,
            files=words.files,
        )
        tx.messages.add(message)
        tx.outbox.put(
            Outgoing(
                number=0,
                key=words.key,
                chat=words.chat,
                message=message.id,
                at=now,
                parts=self._parts(words, message.id),
            )
        )
        tx.after_commit(lambda: self._tell(message))
        return message.id

    def _speaker_in(self, tx: Tx, chat: ChatId) -> str:
        group = tx.groups.of_chat(chat)
        return (group and group.assistant_name) or self._speaker

    def _parts(self, words: Words, message: MessageId) -> tuple[Part, ...]:
        channel = self._channel_of(words.chat)
        text, files = words.text, words.files
        if channel is not None and not channel.capabilities.files:
            text, files = mentioning(text, files, _NOT_HERE), ()
        bodies = channel.compose(text) if channel is not None else (text,)
        if len(bodies) == 1:
            return (Part(body=bodies[0], message_id=message, files=files),)
        # Words first: what belongs to them comes behind the last of them.
        return tuple(
            Part(
                body=body,
                message_id=f"{message}.{place}",
                files=files if place == len(bodies) else (),
            )
            for place, body in enumerate(bodies, 1)
        )

    def _tell(self, message: Message) -> None:
        self._feed.publish(MessageStored(chat=message.chat, seq=message.seq, is_bot=True))
        self._wake_delivery(message.chat)
