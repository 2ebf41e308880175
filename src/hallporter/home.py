"""The home folder: where everything of one installation lies, and who holds it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.disk import needing_room
from hallporter.domain.errors import ConflictError, InvalidSettingsError
from hallporter.removal import remove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600
_OTHERS = 0o077  # what group and others may do
_HOLDER_SIZE = 1024  # bytes
_TOKEN = re.compile(r"hp_[A-Za-z0-9_-]{43}")
_INSTALLATION = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The paths below one home; `warnings` are what was found when it was opened."""

    path: Path
    warnings: tuple[str, ...] = ()

    @property
    def toml(self) -> Path:
        return self.path / "hallporter.toml"

    @property
    def dotenv(self) -> Path:
        return self.path / ".env"

    @property
    def database(self) -> Path:
        """Where the store is unless the settings say otherwise."""
        return self.path / "hallporter.db"

    @property
    def log_file(self) -> Path:
        return self.path / "logs" / "hallporter.log"

    @property
    def groups_dir(self) -> Path:
        return self.path / "groups"

    @property
    def global_dir(self) -> Path:
        """Shared by all groups, written by main."""
        return self.groups_dir / "global"

    @property
    def claims_dir(self) -> Path:
        """Requests that were taken out of an agent's reach."""
        return self.path / "data" / "claims"

    @property
    def media_dir(self) -> Path:
        """Files that go along with messages; agents have no way to them."""
        return self.path / "data" / "media"

    @property
    def errors_dir(self) -> Path:
        """Requests that could not be understood, put aside."""
        return self.path / "data" / "ipc" / "errors"

    @property
    def run_dir(self) -> Path:
        return self.path / "run"

    @property
    def restoring_dir(self) -> Path:
        """A backup while it is unpacked."""
        return self.run_dir / "restoring"

    @property
    def restore_journal(self) -> Path:
        """There while a restore moves things: how to finish it."""
        return self.run_dir / "restoring.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a home; a host that is not listening yet has no url."""

    pid: int
    url: str
    started: str


def default_home(environment: Mapping[str, str]) -> Path:
    """`HALLPORTER_HOME`, or `.hallporter` of the user."""
    named = environment.get("HALLPORTER_HOME")
    if named:
        return Path(named)
    user = environment.get("HOME")
    return (Path(user) if user else Path.home()) / ".hallporter"


def open_home(path: Path) -> Home:
    """The home at `path`, with what it lacks made, and a restore that was cut short at its end.
    Raises `InvalidSettingsError`, or `DiskError`; what `restore.finish` does, or `ConflictError`
    while a restore is at work."""
    home = Home(path=path.expanduser().absolute())
    try:
        with needing_room(home.path):
            finished = _after_a_restore(home)
            _make_folders(home)
        warnings = (*finished, *_others_may_enter(home.path), *_close_dotenv(home.dotenv))
    except (FileExistsError, NotADirectoryError) as error:
        # The system names the folder that it could not make; in its way is that, or one above.
        raise InvalidSettingsError(
            f"the home {home.path} cannot be made: {_obstacle(Path(error.filename))} is not a"
            " folder; name another home with --home or HALLPORTER_HOME"
        ) from error
    except OSError as error:
        raise InvalidSettingsError(
            f"the home {home.path} cannot be used: {error.filename}: {error.strerror}; make it"
            " writable for this user, or name another home with --home or HALLPORTER_HOME"
        ) from error
    return Home(path=home.path, warnings=warnings)


class Hold:
    """A home held by this process."""

    def __init__(self, lock: int, started: datetime) -> None:
        self._lock = lock
        self._started = started

    def announce(self, url: str) -> None:
        """Tell those who look where the host listens."""
        words = {"pid": os.getpid(), "url": url, "started": self._started.isoformat()}
        # Always the same size and one write: a reader never sees half of two announcements.
        os.pwrite(self._lock, json.dumps(words).ljust(_HOLDER_SIZE).encode(), 0)


@contextmanager
def hold(home: Home, *, url: str, started: datetime) -> Iterator[Hold]:
    """Be the only one in this home until the end of the block, or of the process.

    Raises `ConflictError` naming the one who is.
    """
    lock = os.open(home.run_dir / "lock", os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
    try:
        with _door(home):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _held(home, _read(lock)) from error
            held = Hold(lock, started)
            with needing_room(home.path):
                held.announce(url)
        yield held
    finally:
        os.close(lock)


def reachable(url: str) -> str:
    """A host that listens everywhere is called here."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def read_holder(home: Home) -> Holder | None:
    """Who holds the home now; None when nobody does, whatever an ended host has left."""
    try:
        lock = os.open(home.run_dir / "lock", os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        with _door(home):
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _read(lock)
            fcntl.flock(lock, fcntl.LOCK_UN)
            return None
    finally:
        os.close(lock)


def admin_token(home: Home) -> str:
    """The operator's token for the command line, made once."""
    return _kept(home, "admin-token", _TOKEN, lambda: f"hp_{secrets.token_urlsafe(32)}")


def installation(home: Home) -> str:
    """The short name that tells this home's sandboxes from another's, made once."""
    return _kept(home, "installation", _INSTALLATION, lambda: secrets.token_hex(4))


def _after_a_restore(home: Home) -> tuple[str, ...]:
    """What one that was killed has left: moves are finished, what was only unpacked goes."""
    if not home.restore_journal.exists() and not home.restoring_dir.exists():
        return ()
    from hallporter.stores.restore import finish  # noqa: PLC0415  hardly ever needed

    lock = os.open(home.run_dir / "lock", os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
    try:
        with _door(home):  # to its end: whoever looks for a holder meanwhile waits
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if home.restore_journal.exists():
                    raise _held(home, _read(lock)) from error
                return ()  # it is being unpacked right now
            told: tuple[str, ...] = ()
            if home.restore_journal.exists():
                aside = str(finish(home.restore_journal, home.path))
                kept = f"; what was there before is in {aside}" if aside else ""
                told = (f"a restore had been cut short: it is finished now{kept}",)
            remove(home.restoring_dir)
            return told
    finally:
        os.close(lock)


def _make_folders(home: Home) -> None:
    home.path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    if not os.access(home.path, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(None, "no permission to write", str(home.path))
    for private in (home.run_dir, home.path / "store", home.log_file.parent, home.media_dir):
        private.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if private.stat().st_mode & _OTHERS:
            private.chmod(_PRIVATE)
    data = home.path / "data"
    for folder in (home.global_dir, home.errors_dir, home.claims_dir, data / "sessions"):
        folder.mkdir(parents=True, exist_ok=True)


def _obstacle(folder: Path) -> Path:
    return next((one for one in (folder, *folder.parents) if one.exists()), folder)


def _others_may_enter(path: Path) -> tuple[str, ...]:
    # Said, not mended: the owner may have pointed us to a folder that is more than our home.
    mode = path.stat().st_mode & 0o777
    if not mode & _OTHERS:
        return ()
    return (f"others may look into the home {path} (mode {mode:04o}): chmod 700 {path}",)


def _close_dotenv(dotenv: Path) -> tuple[str, ...]:
    if not dotenv.exists() or not dotenv.stat().st_mode & _OTHERS:
        return ()
    try:
        dotenv.chmod(_PRIVATE_FILE)
    except PermissionError:
        return (f"others may read {dotenv}, and it is not ours to close: chmod 600 {dotenv}",)
    return (f"others could read {dotenv}: it is closed to them now (mode 0600)",)


@contextmanager
def _door(home: Home) -> Iterator[None]:
    """One at a time, for a moment: a look at the lock takes it, and must not turn a host away."""
    door = os.open(home.run_dir / "door", os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
    try:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield
    finally:
        os.close(door)


def _read(lock: int) -> Holder:
    words = json.loads(os.pread(lock, _HOLDER_SIZE, 0))
    return Holder(pid=words["pid"], url=words["url"], started=words["started"])


def _held(home: Home, holder: Holder) -> ConflictError:
    where = f" at {holder.url}" if holder.url else ""
    return ConflictError(
        f"the home {home.path} is held by process {holder.pid}{where}: stop that one first,"
        " or name another home with --home or HALLPORTER_HOME",
        pid=holder.pid,
        url=holder.url,
    )


def _kept(home: Home, name: str, shape: re.Pattern[str], make: Callable[[], str]) -> str:
    file = home.run_dir / name
    with _door(home):
        if not file.exists():
            with needing_room(home.path):
                _write_whole(file, make())
        words = file.read_text(encoding="utf-8", errors="replace").strip()
    if shape.fullmatch(words) is None:
        raise InvalidSettingsError(f"{file} is damaged: delete it, and a new one is made")
    return words


def _write_whole(file: Path, words: str) -> None:
    """All of it or nothing, also when the power goes."""
    part = file.with_name(f"{file.name}.part")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE_FILE)
    with os.fdopen(number, "w", encoding="utf-8") as writing:
        writing.write(f"{words}\n")
        writing.flush()
        os.fsync(writing.fileno())
    part.replace(file)
