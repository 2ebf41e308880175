"""One transaction with its books, whatever the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallporter.stores.chats import SqlChats
from hallporter.stores.commands import SqlCommands
from hallporter.stores.groups import SqlGroups
from hallporter.stores.links import SqlLinks
from hallporter.stores.messages import SqlMessages
from hallporter.stores.notices import SqlNotices
from hallporter.stores.outbox import SqlOutbox
from hallporter.stores.removals import SqlRemovals
from hallporter.stores.sessions import SqlSessions
from hallporter.stores.tasks import SqlTasks
from hallporter.stores.tokens import SqlTokens
from hallporter.stores.turns import SqlTurns

if TYPE_CHECKING:
    from collections.abc import Callable

    from hallporter.stores.queries import Run


class SqlTx:
    """`books.Tx`: the books share one way to run a named statement."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.chats = SqlChats(run)
        self.messages = SqlMessages(run)
        self.turns = SqlTurns(run)
        self.outbox = SqlOutbox(run)
        self.groups = SqlGroups(run)
        self.tasks = SqlTasks(run)
        self.commands = SqlCommands(run)
        self.tokens = SqlTokens(run)
        self.sessions = SqlSessions(run)
        self.links = SqlLinks(run)
        self.notices = SqlNotices(run)
        self.removals = SqlRemovals(run)
        self.afterwards: list[Callable[[], None]] = []

    def after_commit(self, action: Callable[[], None]) -> None:
        self.afterwards.append(action)
