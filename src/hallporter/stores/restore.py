"""What was unpacked is moved into its place, all of it or nothing: also when the host is killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.errors import ConflictError, CorruptInputError, UnavailableError
from hallporter.removal import remove
from hallporter.stores.backup import COMPANIONS
from hallporter.stores.manifest import DATABASE, DEEPEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600
_ASIDE = "before-restore-"
# What stays where it is: the lock is held, and what happened is no part of a backup.
_STAYS = ("run", "logs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """The folders that hold what was there before; a database in the home went with the home."""

    home: Path | None = None
    database: Path | None = None

    def __str__(self) -> str:
        places = [str(place) for place in (self.home, self.database) if place is not None]
        return " and ".join(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Every move of a restore, written down before the first: from where, to where."""

    leaving: Sequence[tuple[Path, Path]]
    arriving: Sequence[tuple[Path, Path]]  # the database last
    aside: Aside

    @property
    def database(self) -> Path:
        """The new one, before its move."""
        return self.arriving[-1][0]


def occupants(home: Path) -> Sequence[str]:
    """What stands in the way of a restore: everything that is not an empty folder."""
    return [
        entry.name
        for entry in sorted(home.iterdir())
        if entry.name not in _STAYS and not entry.name.startswith(_ASIDE) and not _is_empty(entry)
    ]


def place_of(wanted: Path, *, unpacked: Path, home: Path) -> Path:
    """Where the database belongs: `wanted` is what the settings say that were unpacked.

    Raises `ConflictError` when something else belongs there.
    """
    if wanted.is_relative_to(unpacked):
        wanted = home / wanted.relative_to(unpacked)
    database = Path(os.path.normpath(wanted))
    if not database.is_relative_to(home):
        is_free = not database.is_dir()
    elif database == home or _stays(database.relative_to(home).parts[0]):
        is_free = False
    else:
        inner = unpacked / database.relative_to(home)
        is_free = inner == unpacked / DATABASE or not _is_taken(inner)
    if not is_free:
        raise ConflictError(
            f"the settings in the backup have the database at {database}, which is another file's"
            " or folder's place: name one for this home with"
            " HALLPORTER_STORE__URL=sqlite:////ANOTHER/PLACE.db"
        )
    return database


def put_in_place(unpacked: Path, home: Path, *, database: Path, stamp: str, journal: Path) -> Aside:
    """Move what was unpacked into the home; what was there before is moved aside.

    `database` is where the settings want it. Cut short, `finish` does the rest by the journal.
    Raises `UnavailableError`; then everything is where it was, or the journal is still there.
    """
    plan = _plan(unpacked, home, database=database, name=f"{_ASIDE}{stamp}")
    try:
        _bring_near(unpacked / DATABASE, plan)
    except OSError as error:
        raise _given_up(unpacked, journal, plan, error) from error
    try:
        _write(journal, plan)
        _carry_out(plan)
    except OSError as error:
        try:
            _undo(plan)
        except OSError as another:
            raise _unfinished(home, plan, another) from error
        raise _given_up(unpacked, journal, plan, error) from error
    _close(journal, plan)
    remove(unpacked)
    return plan.aside


def finish(journal: Path, home: Path) -> Aside:
    """Carry out what a restore that was cut short has still to do.

    Raises `CorruptInputError` or `UnavailableError`.
    """
    try:
        plan = _read(journal)
    except (ValueError, KeyError, TypeError) as error:
        message = f"a restore into {home} was cut short, and {journal} cannot be read: what was"
        raise CorruptInputError(f"{message} there before is in {home}/{_ASIDE}…") from error
    try:
        _carry_out(plan)
        _close(journal, plan)
    except OSError as error:
        raise _unfinished(home, plan, error) from error
    return plan.aside


def refuse_occupied(home: Path, database: Path) -> None:
    """Raises `ConflictError` naming what is in the way."""
    found = list(occupants(home))
    if database.exists() and not database.is_relative_to(home):
        found.append(str(database))
    if found:
        raise ConflictError(
            f"the home {home} is not empty ({', '.join(found)}): name another one with --home,"
            " or say --force to move aside what is there"
        )


def refuse_in_use(database: Path) -> None:
    """Raises `ConflictError` when another program has the database open: a host of another home
    may, whose lock is not ours to see."""
    if not database.exists():
        return
    try:
        with contextlib.closing(
            sqlite3.connect(database, timeout=0, isolation_level=None)
        ) as trying:
            trying.execute("PRAGMA locking_mode = EXCLUSIVE")
            trying.execute("BEGIN EXCLUSIVE")
            trying.execute("ROLLBACK")
    except sqlite3.Error as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            return  # damaged, or not a database at all: nobody can use it
        raise ConflictError(
            f"the database {database} is in use: another host, or another program, has it"
            " open. Stop that one first, or have this home's database elsewhere:"
            " HALLPORTER_STORE__URL=sqlite:////ANOTHER/PLACE.db"
        ) from error


def _plan(unpacked: Path, home: Path, *, database: Path, name: str) -> Journal:
    is_inside = database.is_relative_to(home)
    beside = [] if is_inside else list(_set_aside(database, database.parent / name))
    within = [(home / entry, home / name / entry) for entry in occupants(home)]
    others = sorted(entry.name for entry in unpacked.iterdir() if entry.name != DATABASE)
    # What may lie on another disk is copied there first: a move must be one step.
    near = unpacked / DATABASE if is_inside else database.with_name(f"{database.name}.restoring")
    return Journal(
        leaving=[*beside, *within],
        arriving=[*((unpacked / entry, home / entry) for entry in others), (near, database)],
        aside=Aside(
            home=home / name if within else None,
            database=database.parent / name if beside else None,
        ),
    )


def _set_aside(database: Path, beside: Path) -> Iterator[tuple[Path, Path]]:
    """Under its own names: SQLite finds a log by the name alone."""
    for end in (*COMPANIONS, ""):
        file = Path(f"{database}{end}")
        if os.path.lexists(file):
            yield file, beside / file.name


def _bring_near(unpacked: Path, plan: Journal) -> None:
    near = plan.database
    if near == unpacked:
        return
    near.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    number = os.open(near, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _PRIVATE_FILE)
    with os.fdopen(number, "wb") as writing, unpacked.open("rb") as reading:
        shutil.copyfileobj(reading, writing)
        writing.flush()
        os.fsync(number)


def _carry_out(plan: Journal) -> None:
    """Each move that was not made yet; it does not matter how far an earlier try came."""
    for here, there in plan.leaving:
        if not os.path.lexists(there) and os.path.lexists(here):
            _move(here, there)
    for here, there in plan.arriving:
        if os.path.lexists(here):
            if _is_empty(there):
                remove(there)  # of a new home, where nothing is lost
            if os.path.lexists(there):
                raise FileExistsError(None, "something is there by now", str(there))
            _move(here, there)
        elif not os.path.lexists(there):
            raise FileNotFoundError(None, "it is gone", str(there))


def _undo(plan: Journal) -> None:
    for here, there in (*reversed(plan.arriving), *reversed(plan.leaving)):
        if os.path.lexists(there) and not os.path.lexists(here):
            _move(there, here)
    for place in (plan.aside.home, plan.aside.database):
        if place is not None:
            with contextlib.suppress(OSError):  # it may hold what is not of this restore
                place.rmdir()


def _move(here: Path, there: Path) -> None:
    there.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    here.rename(there)


def _write(journal: Path, plan: Journal) -> None:
    words = {
        "leaving": [(str(here), str(there)) for here, there in plan.leaving],
        "arriving": [(str(here), str(there)) for here, there in plan.arriving],
        "home": None if plan.aside.home is None else str(plan.aside.home),
        "database": None if plan.aside.database is None else str(plan.aside.database),
    }
    part = journal.with_name(f"{journal.name}.part")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE_FILE)
    with os.fdopen(number, "w", encoding="utf-8") as writing:
        json.dump(words, writing)
        writing.flush()
        os.fsync(number)
    part.replace(journal)
    _sync(journal.parent)


def _read(journal: Path) -> Journal:
    words = json.loads(journal.read_bytes())
    home, database = words["home"], words["database"]
    return Journal(
        leaving=[(Path(here), Path(there)) for here, there in words["leaving"]],
        arriving=[(Path(here), Path(there)) for here, there in words["arriving"]],
        aside=Aside(
            home=None if home is None else Path(home),
            database=None if database is None else Path(database),
        ),
    )


def _close(journal: Path, plan: Journal) -> None:
    """The moves are on the disk before the journal is gone from it."""
    for folder in {path.parent for move in (*plan.leaving, *plan.arriving) for path in move}:
        _sync(folder)
    journal.unlink()
    _sync(journal.parent)


def _given_up(unpacked: Path, journal: Path, plan: Journal, error: OSError) -> UnavailableError:
    with contextlib.suppress(OSError):  # it never came to be
        plan.database.unlink()
    journal.unlink(missing_ok=True)
    remove(unpacked)
    return UnavailableError(f"nothing was restored, and all is where it was: {_why(error)}")


def _unfinished(home: Path, plan: Journal, error: OSError) -> UnavailableError:
    kept = f"; what was there before is in {plan.aside}" if str(plan.aside) else ""
    return UnavailableError(
        f"a restore into {home} was cut short and cannot be finished: {_why(error)}{kept}."
        " Mend that; the next command goes on with it"
    )


def _why(error: OSError) -> str:
    return ": ".join(str(word) for word in (error.filename, error.strerror or error) if word)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _stays(name: str) -> bool:
    return name in _STAYS or name.startswith(_ASIDE)


def _is_taken(inner: Path) -> bool:
    """By something that was unpacked, or something that is no folder stands above it."""
    return os.path.lexists(inner) or any(
        os.path.lexists(above) and not above.is_dir() for above in inner.parents
    )


def _is_empty(path: Path) -> bool:
    """A folder with nothing but folders in it; one that cannot be looked into is not."""
    if path.is_symlink() or not path.is_dir():
        return False
    unread: list[OSError] = []
    try:
        for where, _, files, _ in os.fwalk(path, onerror=unread.append):
            # Agents may have dug deeper than we can follow: that is something, too.
            if files or where.count("/") - str(path).count("/") > DEEPEST:
                return False
    except OSError:
        return False
    return not unread
