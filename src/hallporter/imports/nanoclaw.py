"""A NanoClaw v1 folder: its database, its groups' files and its allow-lists, only read."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.folder import check_shape
from hallporter.domain.foreign import ForeignHouse
from hallporter.imports.allow_lists import carry_mounts, has_mounts, read_senders
from hallporter.imports.env_file import house_of, read_env, says_who_is_us
from hallporter.imports.nanoclaw_groups import GroupReader
from hallporter.imports.nanoclaw_rows import Rows
from hallporter.imports.place import is_folder, names_in
from hallporter.imports.snapshot import snapshot
from hallporter.imports.tree import copied, count_files
from hallporter.removal import opened, remove

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from threading import Event

    from hallporter.domain.foreign import (
        ForeignChat,
        ForeignGroup,
        ForeignMessage,
        ForeignRun,
        ForeignTask,
        Unread,
    )
    from hallporter.domain.ids import Folder
    from hallporter.domain.import_report import Piece
    from hallporter.imports.place import Parts

_DATABASE = Path("store", "messages.db")
_PRIVATE = ("run", "importing")  # below the home
_GROUPS = "groups"
_IPC = ("data", "ipc")
_SHARED = "global"


class NanoClaw:
    """`importing.Archive`; made by `open_nanoclaw`."""

    def __init__(
        self,
        *,
        source: str,
        project: int,
        config: Path,
        home: Path,
        rows: Rows,
        stopping: Event,
    ) -> None:
        self.source = source
        self._project = project  # its handle: whatever becomes of the path, this is the folder
        self._stopping = stopping
        self._config = config
        self._home = home
        self._policy = home / "policy" / "mounts.json"
        self._rows = rows
        self._senders = read_senders(config)

    def house(self) -> ForeignHouse:
        house = house_of(self._env())
        remarks = (*house.remarks, *self._left_behind())
        return ForeignHouse(
            assistant_name=house.assistant_name, timezone=house.timezone, remarks=remarks
        )

    def size(self, folders: Mapping[str, Folder]) -> int:
        """How many steps the rest will take, more or less."""
        trees = (
            count_files(self._project, source, self._stopping) for source, _ in self._trees(folders)
        )
        return self._rows.size() + sum(trees)

    def chats(self) -> Iterator[ForeignChat | Unread]:
        return self._rows.chats()

    def groups(self) -> Iterator[ForeignGroup | Unread]:
        reader = GroupReader(
            senders=self._senders,
            sessions=self._rows.sessions(),
            has_memory=lambda folder: is_folder(self._project, _sessions(folder)),
            may_mount=has_mounts(self._config, self._policy),
        )
        return (reader.read(row) for row in self._rows.groups())

    def tasks(self) -> Iterator[ForeignTask | Unread]:
        return self._rows.tasks()

    def runs(self) -> Iterator[ForeignRun | Unread]:
        return self._rows.runs()

    def messages(self) -> Iterator[ForeignMessage | Unread]:
        env = self._env()
        name = house_of(env).assistant_name or ""
        return self._rows.messages(assistant=name, has_own_number=says_who_is_us(env))

    def files(self, folders: Mapping[str, Folder], *, is_dry_run: bool) -> Iterator[Piece]:
        """`folders` are the names that its groups have here."""
        lists = (
            carry_mounts(self._config, self._policy, is_dry_run=is_dry_run),
            self._senders.broken,
        )
        trees = (
            copied(self._project, source, target, is_dry_run=is_dry_run, stopping=self._stopping)
            for source, target in self._trees(folders)
        )
        return itertools.chain(
            (piece for piece in lists if piece is not None), itertools.chain.from_iterable(trees)
        )

    def orphans(self, folders: Mapping[str, Folder]) -> Iterator[str]:
        """Folders of groups that are none: they stay where they are."""
        for name in names_in(self._project, (_GROUPS,)):
            is_known = name in folders or name == _SHARED
            if not is_known and is_folder(self._project, (_GROUPS, name)):
                yield f"{_GROUPS}/{name}".encode("utf-8", "replace").decode("utf-8")

    def _trees(self, folders: Mapping[str, Folder]) -> Iterator[tuple[Parts, Path]]:
        """From where to where; each name is one step of a path, and nothing else."""
        groups, sessions = self._home / "groups", self._home / "data" / "sessions"
        yield (_GROUPS, _SHARED), groups / _SHARED
        for name, folder in folders.items():
            check_shape(name)
            yield (_GROUPS, name), groups / folder
            yield _sessions(name), sessions / folder / ".claude"

    def _env(self) -> Mapping[str, str]:
        try:
            return read_env(self._project)
        except OSError:
            return {}

    def _left_behind(self) -> Iterator[str]:
        """What lies there and has no place here."""
        if names_in(self._project, ("store", "auth")):
            yield (
                "the link to WhatsApp (store/auth) is not carried over: it is made anew when that"
                " channel is set up here"
            )
        boxes = itertools.product(names_in(self._project, _IPC), ("messages", "tasks"))
        names = (names_in(self._project, (*_IPC, folder, box)) for folder, box in boxes)
        if waiting := sum(name.endswith(".json") for name in itertools.chain.from_iterable(names)):
            yield (
                f"requests of agents that NanoClaw had not carried out (data/ipc: {waiting}) are"
                " not carried over"
            )
        try:
            read_env(self._project)
        except OSError as error:
            yield f".env cannot be read ({error.strerror}): the assistant's name is not known"


@contextlib.contextmanager
def open_nanoclaw(path: str, config: str | None, home: Path, stopping: Event) -> Iterator[NanoClaw]:
    """The folder, or its database. Raises `InvalidRequestError` when there is nothing to import;
    `stopping` ends whatever is being read or copied."""
    project = _project_of(Path(path))
    settings = Path("~/.config/nanoclaw").expanduser() if config is None else Path(config)
    if config is not None and not settings.is_dir():
        message = f"{config} is no folder: --config names the one with the allow-lists"
        raise InvalidRequestError(message, field="config", value=config)
    with (
        opened(project) as top,
        _private(home) as folder,
        snapshot(top, _DATABASE, folder, stopping) as connection,
    ):
        rows = Rows(connection)
        if problem := rows.problem():
            message = f"{project / _DATABASE} is not NanoClaw v1's: {problem}"
            raise InvalidRequestError(message, field="path", value=path)
        yield NanoClaw(
            source=str(project),
            project=top,
            config=settings,
            home=home,
            rows=rows,
            stopping=stopping,
        )


def clear(home: Path) -> None:
    """What an import that was killed has left of its private copy."""
    if (folder := home.joinpath(*_PRIVATE)).exists():
        remove(folder)


@contextlib.contextmanager
def _private(home: Path) -> Iterator[Path]:
    clear(home)
    folder = home.joinpath(*_PRIVATE)
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        clear(home)


def _sessions(folder: str) -> Parts:
    return ("data", "sessions", folder, ".claude")


def _project_of(path: Path) -> Path:
    if not path.is_absolute():
        message = f"{path} is no whole path: begin with '/'"
        raise InvalidRequestError(message, field="path", value=str(path))
    places = (path, path.parent, path.parent.parent)
    for project in places if path.exists() else ():
        if (project / _DATABASE).is_file() and _leads_to(path, project):
            return project.resolve()
    message = f"no NanoClaw v1 is at {path}: there is no {_DATABASE} in it"
    raise InvalidRequestError(message, field="path", value=str(path))


def _leads_to(path: Path, project: Path) -> bool:
    """Whether someone who names this path means that project: it, its store, or its database."""
    return path in (project, project / _DATABASE.parent, project / _DATABASE)
