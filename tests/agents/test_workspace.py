"""What an agent sees of the home: its own folders, and never the host's secrets."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from hallporter.agents.workspace import Premises, mounts_of_arguments
from hallporter.domain.brief import Mount
from hallporter.domain.errors import AgentRefusedError
from tests.agents.room import SOURCE, group

SECRETS = (".env", "hallporter.toml", "hallporter.db", "run", "store", "data", "policy")


@pytest.fixture
def premises(tmp_path: Path) -> Premises:
    return Premises(home=tmp_path, source=SOURCE)


def at(target: str, mounts: tuple[Mount, ...]) -> Mount:
    return next(mount for mount in mounts if mount.target == target)


@pytest.mark.requirement("mount.group.read-write")
@pytest.mark.requirement("mount.ipc.read-write")
@pytest.mark.requirement("mount.sessions.claude-home")
@pytest.mark.parametrize("is_main", [True, False])
def test_a_group_writes_its_own_folders(premises: Premises, is_main: bool) -> None:
    mounts = premises.mounts(group(is_main=is_main))

    for target, source in (
        ("/workspace/group", "groups/family"),
        ("/workspace/ipc", "data/ipc/family"),
        ("/home/node/.claude", "data/sessions/family/.claude"),
    ):
        found = at(target, mounts)
        assert found.source == premises.home / source
        assert found.writable


@pytest.mark.requirement("mount.global.read-only-for-others")
@pytest.mark.parametrize("is_main", [True, False])
def test_the_shared_folder_is_written_by_main_alone(premises: Premises, is_main: bool) -> None:
    shared = at("/workspace/global", premises.mounts(group(is_main=is_main)))

    assert shared.source == premises.home / "groups/global"
    assert shared.writable == is_main


@pytest.mark.requirement("mount.project.main-only")
@pytest.mark.requirement("mount.project.read-write")
def test_the_source_is_shown_to_main_alone_and_never_writable(premises: Premises) -> None:
    def project(is_main: bool) -> list[Mount]:
        mounts = premises.mounts(group(is_main=is_main))
        return [mount for mount in mounts if mount.target.startswith("/workspace/project")]

    assert project(is_main=False) == []
    assert {mount.target.rpartition("/")[2] for mount in project(is_main=True)} == {
        "hallporter",
        "hallporter_runner",
        "hallporter_wire",
    }
    assert not any(mount.writable for mount in project(is_main=True))


@pytest.mark.requirement("host.isolation.own-session-store")
@pytest.mark.requirement("host.isolation.own-ipc-namespace")
@pytest.mark.parametrize("is_main", [True, False])
def test_no_mount_shows_the_hosts_own_files_or_another_groups(
    premises: Premises, is_main: bool
) -> None:
    others = [
        premises.ipc(group("work")),
        premises.session(group("work")),
        premises.group(group("work")),
    ]
    hidden = [*others, *(premises.home / name for name in SECRETS)]

    for mount in premises.mounts(group(is_main=is_main)):
        assert not any(path.is_relative_to(mount.source) for path in hidden), mount


def test_no_mount_lies_inside_another(premises: Premises) -> None:
    targets = [PurePosixPath(mount.target) for mount in premises.mounts(group(is_main=True))]

    assert not any(a != b and a.is_relative_to(b) for a in targets for b in targets)


@pytest.mark.requirement("group.folder.created")
def test_preparing_makes_every_folder_that_is_mounted(premises: Premises) -> None:
    premises.prepare(group())
    premises.prepare(group())

    assert all(mount.source.is_dir() for mount in premises.mounts(group()))
    ipc = premises.ipc(group())
    assert {path.name for path in ipc.iterdir()} == {"messages", "tasks", "input", "results"}


def test_a_program_that_is_named_by_its_path_is_shown_there_and_read_only(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.touch()

    argv = ("python3", str(program), "--fast", str(program))
    (mount,) = mounts_of_arguments(argv, tmp_path / "home")

    assert (mount.source, mount.target, mount.writable) == (program, str(program), False)


@pytest.mark.parametrize(
    "argument", ["python3", "agent.py", "/usr/bin/env", "/workspace/group/agent.py", "--x=/etc"]
)
def test_what_is_there_already_or_nowhere_is_not_mounted(argument: str, tmp_path: Path) -> None:
    assert mounts_of_arguments((argument,), tmp_path) == ()


def test_a_command_cannot_show_the_home_to_its_program(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for folder in ("/", str(tmp_path), str(home)):
        with pytest.raises(AgentRefusedError, match="the whole home lies in it"):
            mounts_of_arguments(("ls", folder), home)
