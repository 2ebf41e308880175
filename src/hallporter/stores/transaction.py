"""One transaction with its books, whatever the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.stores.chats import SqlChats
from hallporter.stores.groups import SqlGroups
from hallporter.stores.messages import SqlMessages
from hallporter.stores.outbox import SqlOutbox
from hallporter.stores.tokens import SqlTokens
from hallporter.stores.turns import SqlTurns

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.stores.queries import Run


class SqlTx:
    """`books.Tx`: the books share one way to run a named statement."""

    def __init__(self, run: Run) -> None:
        self.chats = SqlChats(run)
        self.messages = SqlMessages(run)
        self.turns = SqlTurns(run)
        self.outbox = SqlOutbox(run)
        self.groups = SqlGroups(run)
        self.tokens = SqlTokens(run)
        self.afterwards: list[Callable[[], None]] = []

    def after_commit(self, action: Callable[[], None]) -> None:
        self.afterwards.append(action)
