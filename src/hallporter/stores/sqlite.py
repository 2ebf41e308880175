"""The store on one SQLite file: one writer thread with group commit, three readers beside it."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import structlog

from hallporter.domain.disk import needing_room
from hallporter.domain.errors import DiskError, StoreRefusedError, StoreUnavailableError
from hallporter.stores import migrations, queries
from hallporter.stores.columns import time_in
from hallporter.stores.refusals import disk_trouble, translated
from hallporter.stores.scrubbing import scrub_files
from hallporter.stores.transaction import SqlTx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from hallporter.ports import Clock
    from hallporter.stores.migrations import Migration
    from hallporter.stores.queries import Row, Run

T = TypeVar("T")

log = structlog.get_logger(__name__)

_READERS = 3
_ROOM = 200_000  # bytes that there must be for a disk to count as mended
_MAX_BATCH = 256  # closures in one commit: bounds how long the first of them waits
_BUSY_TIMEOUT = 5.0  # seconds: another process (a backup, a look with the shell) holds the file

_SCHEMA_VERSION = """
CREATE TABLE IF NOT EXISTS schema_version (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, at TEXT NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """The schema that an older file was brought to, and what it was before."""

    schema: int
    copy: Path


@dataclass(frozen=True, slots=True)
class _Job:
    fn: Callable[[SqlTx], Any]
    done: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Result:
    job: _Job
    value: Any = None
    error: Exception | None = None
    afterwards: Sequence[Callable[[], None]] = ()


class SqliteStore:
    """`ports.Store`; made by `open_store`, which also closes it."""

    def __init__(
        self,
        path: Path,
        loop: asyncio.AbstractEventLoop,
        connection: sqlite3.Connection,
        upgrade: Upgrade | None,
    ) -> None:
        self.upgrade = upgrade
        self._path = path
        self._loop = loop
        self._connection = connection  # the writer's
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="store-writer", daemon=True)
        self._local = threading.local()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-reader")
        self._reading: list[sqlite3.Connection] = []
        self._is_closed = False
        self._lacks_room = False  # a write has failed for the disk's sake
        self._writing = threading.Lock()  # held during a commit, and while the files are scrubbed

    async def write(self, fn: Callable[[SqlTx], T]) -> T:
        """Durable when it returns: committed with `synchronous=FULL`."""
        if self._is_closed:
            raise StoreUnavailableError("the store is closed")
        done: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(fn, done))
        return await done

    async def read(self, fn: Callable[[SqlTx], T]) -> T:
        """On the newest committed state, beside the writer."""
        if self._is_closed:
            raise StoreUnavailableError("the store is closed")
        return await self._loop.run_in_executor(self._readers, self._read_one, fn)

    async def check(self) -> None:
        """Raises `StoreUnavailableError` when it cannot be read, or when a write has failed for
        want of room and another would now. Asking costs no write, unless there is trouble."""
        await self.read(lambda tx: tx.groups.main())
        if self._lacks_room:
            await self.write(_take_room)
            self._lacks_room = False

    async def scrub(self) -> bool:
        """Rewrites the whole file; writes wait meanwhile, reads go on."""
        if self._is_closed:
            raise StoreUnavailableError("the store is closed")
        return await self._loop.run_in_executor(None, self._scrub)

    def start(self) -> None:
        """Begin to take writes."""
        self._writer.start()

    async def close(self) -> None:
        """Finish what was handed in, then let go of the file."""
        self._is_closed = True
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._writer.join)
        self._readers.shutdown(wait=True)
        for connection in self._reading:
            connection.close()

    def _read_one(self, fn: Callable[[SqlTx], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = _connect(self._path)
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
            self._reading.append(connection)
        try:
            connection.execute("BEGIN")
            return fn(SqlTx(_runner(connection)))
        except sqlite3.Error as error:
            raise translated(error) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _scrub(self) -> bool:
        try:
            with self._writing, contextlib.closing(_connect(self._path)) as connection:
                return scrub_files(connection)
        except sqlite3.Error as error:
            raise translated(error) from error

    def _write_all(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                batch = [job]
                is_last = False
                while len(batch) < _MAX_BATCH:
                    try:
                        more = self._jobs.get_nowait()
                    except queue.Empty:
                        break
                    if more is None:
                        is_last = True
                        break
                    batch.append(more)
                with self._writing:
                    results = _commit(self._connection, batch)
                if any(isinstance(result.error, DiskError) for result in results):
                    self._lacks_room = True
                # The loop is gone when the process is being torn down: nobody waits any more.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(_resolve, results)
                if is_last:
                    break
        finally:
            self._connection.close()


def _take_room(tx: SqlTx) -> None:
    """As much as a long message would need, and back again."""
    (row,) = tx.run("room_take", filler="0" * _ROOM)
    tx.run("room_give_back", number=row["number"])


def _commit(connection: sqlite3.Connection, batch: Sequence[_Job]) -> Sequence[_Result]:
    """Run a batch of closures, a savepoint each, and commit once."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        results = [_run_one(connection, job) for job in batch]
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        failure = translated(error)
        log.warning("store.write_failed", error=str(error), closures=len(batch))
        return [_Result(job, error=failure) for job in batch]
    return results


def _run_one(connection: sqlite3.Connection, job: _Job) -> _Result:
    tx = SqlTx(_runner(connection))
    connection.execute("SAVEPOINT one")
    try:
        value = job.fn(tx)
    except Exception as error:  # a closure's failure belongs to whoever handed it in
        # A full disk or an I/O error rolls the whole transaction back, not just this savepoint.
        if not connection.in_transaction:
            if isinstance(error, sqlite3.Error):
                raise
            raise sqlite3.OperationalError(str(error)) from error
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        told = translated(error) if isinstance(error, sqlite3.Error) else error
        return _Result(job, error=told)
    connection.execute("RELEASE one")
    return _Result(job, value=value, afterwards=tx.afterwards)


def _resolve(results: Sequence[_Result]) -> None:
    for result in results:
        if not result.job.done.done():
            if result.error is None:
                result.job.done.set_result(result.value)
            else:
                result.job.done.set_exception(result.error)
        for action in result.afterwards:
            try:
                action()
            except Exception:  # it is committed: whoever else waits must hear of theirs
                log.exception("store.after_commit_failed")


def _runner(connection: sqlite3.Connection) -> Run:
    statements = queries.load()

    def run(name: str, /, **values: object) -> Sequence[Row]:
        return cast("Sequence[Row]", connection.execute(statements[name], values).fetchall())

    return run


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=_BUSY_TIMEOUT, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    try:
        # What is deleted is overwritten: a forgotten text must not stay in a free page.
        pragmas = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
        for pragma in (*pragmas, "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextlib.asynccontextmanager
async def open_store(
    path: Path, clock: Clock, schema: Sequence[Migration] | None = None
) -> AsyncIterator[SqliteStore]:
    """Check the file, bring its schema up to date (or to `schema`), and serve it until the block
    ends. Raises `StoreRefusedError` or `StoreUnavailableError`; neither changes the file."""
    loop = asyncio.get_running_loop()
    steps = migrations.load("sqlite") if schema is None else schema
    connection, upgrade = await loop.run_in_executor(None, _prepare, path, clock, steps)
    store = SqliteStore(path, loop, connection, upgrade)
    store.start()
    try:
        yield store
    finally:
        await store.close()


def _prepare(
    path: Path, clock: Clock, schema: Sequence[Migration]
) -> tuple[sqlite3.Connection, Upgrade | None]:
    is_new = not path.exists()
    if is_new:
        with needing_room(path):
            path.touch(mode=0o600)
    try:
        with contextlib.ExitStack() as unless_it_works:
            connection = _connect(path)
            unless_it_works.callback(connection.close)
            if not is_new:
                _check(connection, path)
            upgrade = _migrate(connection, path, clock, schema)
            unless_it_works.pop_all()
            return connection, upgrade
    except sqlite3.OperationalError as error:
        # Locked by someone, no room, no permission: the file itself is not to blame.
        why = disk_trouble(error)
        message = f"the database {path} cannot be opened: {why or error}"
        refusal = DiskError if why else StoreUnavailableError
        raise refusal(message, path=str(path)) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from error


def _check(connection: sqlite3.Connection, path: Path) -> None:
    findings = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    if findings != ["ok"]:
        raise _damaged(path, "; ".join(findings))


def _damaged(path: Path, what: str) -> StoreRefusedError:
    message = (
        f"the database {path} cannot be used: {what}. The file was left as it is:"
        " restore a backup, or move it away to begin anew"
    )
    return StoreRefusedError(message, path=str(path))


def _migrate(
    connection: sqlite3.Connection, path: Path, clock: Clock, schema: Sequence[Migration]
) -> Upgrade | None:
    connection.execute(_SCHEMA_VERSION)
    rows = connection.execute("SELECT number, sha256 FROM schema_version").fetchall()
    applied = {row["number"]: row["sha256"] for row in rows}
    steps = migrations.outstanding(schema, applied)
    upgrade = None
    if steps and applied:
        copy = path.with_name(f"{path.name}.before-{steps[0].number:04d}")
        copy.unlink(missing_ok=True)  # of an upgrade that was cut short: the original is newer
        copy.touch(mode=0o600)  # SQLite would let everyone read it
        connection.execute("VACUUM INTO ?", (str(copy),))
        log.info("store.copied_before_migration", copy=str(copy))
        upgrade = Upgrade(schema=steps[-1].number, copy=copy)
    for step in steps:
        at = time_in(clock.now())
        # executescript commits what is open, so the transaction is part of the script.
        connection.executescript(
            f"BEGIN EXCLUSIVE;\n{step.sql}\nINSERT INTO schema_version VALUES"
            f" ({step.number}, '{step.name}', '{step.checksum}', '{at}');\nCOMMIT;"
        )
        log.info("store.migrated", number=step.number, name=step.name)
    return upgrade
