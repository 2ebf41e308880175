"""The history of another system becomes ours: below the cursor, so nothing old is answered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hallporter.domain.chat import ChatSeen
from hallporter.domain.ids import ChatId, MessageId
from hallporter.domain.import_report import Noun, Outcome
from hallporter.domain.message import Kind, Message, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from hallporter.books import Tx
    from hallporter.domain.foreign import ForeignMessage
    from hallporter.domain.ids import NewId
    from hallporter.domain.import_report import Ledger

_HISTORY = "its chat is no group here: it is kept, as the history of one that was"


class ImportedMessages:
    """`channel_name` is of our channel that a chat belongs to, or None."""

    def __init__(
        self, *, system: str, channel_name: Callable[[ChatId], str | None], new_id: NewId
    ) -> None:
        self._system = system
        self._channel_name = channel_name
        self._new_id = new_id

    def look(self, tx: Tx, batch: Sequence[ForeignMessage]) -> Sequence[Outcome]:
        """What `write` would do with each."""
        return [
            Outcome.CARRIED if _known(tx, foreign) is None else Outcome.THERE for foreign in batch
        ]

    def write(self, tx: Tx, batch: Sequence[ForeignMessage], now: datetime) -> Sequence[Outcome]:
        outcomes = []
        touched = set()
        for foreign in batch:
            chat = ChatId(foreign.chat)
            if tx.chats.get(chat) is None:
                name = self._channel_name(chat) or foreign.channel
                tx.chats.seen(ChatSeen(chat=chat, channel=name, at=min(foreign.at, now)))
            # The row's lock before the look: the network may be handing in the same message now.
            tx.chats.lock(chat)
            if _known(tx, foreign) is not None:
                outcomes.append(Outcome.THERE)
                continue
            tx.messages.add(replace(self._message(foreign, now), seq=tx.chats.raise_head(chat)))
            outcomes.append(Outcome.CARRIED)
            touched.add(chat)
        for chat in touched:
            _pass(tx, chat)
        return outcomes

    def _message(self, foreign: ForeignMessage, now: datetime) -> Message:
        message = Message(
            id=MessageId(self._new_id("m")),
            chat=ChatId(foreign.chat),
            seq=0,
            ext_id=foreign.id,
            sender=foreign.sender,
            sender_name=foreign.sender_name,
            text=foreign.text,
            at=min(foreign.at, now),
            kind=Kind.TEXT,
            why=f"imported from {self._system}",
        )
        if foreign.is_bot:
            return replace(message, kind=Kind.REPLY)
        if foreign.was_given:
            return replace(message, state=State.ANSWERED, why=f"{message.why}, whose agent had it")
        why = f"{message.why}, whose agent had not been given it: nothing old is answered"
        return replace(message, state=State.IGNORED, why=why)


def tell(
    batch: Sequence[ForeignMessage],
    outcomes: Sequence[Outcome],
    groups: Collection[ChatId],
    ledger: Ledger,
) -> None:
    """A remark is for those that came now; `groups` are the chats that have an agent here."""
    for foreign, outcome in zip(batch, outcomes, strict=True):
        if outcome is Outcome.THERE:
            ledger.there(Noun.MESSAGES)
            continue
        ledger.carried(Noun.MESSAGES)
        for remark in foreign.remarks:
            ledger.mended(Noun.MESSAGES, foreign.id, remark)
        if foreign.chat not in groups:
            ledger.note(str(Noun.MESSAGES), _HISTORY, foreign.chat)


def _known(tx: Tx, foreign: ForeignMessage) -> Message | None:
    return tx.messages.repeat_of(ChatId(foreign.chat), foreign.sender, foreign.id)


def _pass(tx: Tx, chat_id: ChatId) -> None:
    """The cursor goes along, unless someone waits above it or is being answered."""
    chat = tx.chats.lock(chat_id)
    if tx.turns.open_in(chat_id) is None and not tx.messages.waiting(chat_id, chat.cursor):
        tx.chats.save(replace(chat, cursor=chat.head))
