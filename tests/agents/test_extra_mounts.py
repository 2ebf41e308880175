"""Folders from elsewhere: the allow-list as it lies in the home, and what an agent then sees."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hallporter.agents.extra_mounts import granted
from hallporter.domain.brief import AgentSettings
from hallporter.domain.errors import AgentRefusedError
from hallporter.domain.extra_mount import ExtraMount, Granted, parse_mount
from tests.agents.room import Room, demo, foreign, open_room
from tests.sandboxes import boxes


class Place:
    """A home with an allow-list, and things beside it that may be asked for."""

    def __init__(self, path: Path) -> None:
        self.home = path / "home"
        self.policy = self.home / "policy" / "mounts.json"
        self.policy.parent.mkdir(parents=True)
        self.outside = path / "outside"
        self.outside.mkdir()
        (self.outside / "notes").mkdir()

    def allow(self, *roots: Path, writable: bool = False, **more: object) -> None:
        listed = [{"path": str(root), "allowReadWrite": writable} for root in roots]
        self.policy.write_text(json.dumps({"allowedRoots": listed, **more}))

    def ask(self, *mounts: object, is_main: bool = False) -> tuple[Granted, ...]:
        return granted(
            [parse_mount(str(mount)) for mount in mounts],
            policy=self.policy,
            protected=[self.home],
            is_main=is_main,
        )

    def refused(self, *mounts: object) -> str:
        with pytest.raises(AgentRefusedError) as caught:
            self.ask(*mounts)
        return caught.value.message


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- the file ------------------------------------------------------------------------------------


def test_without_the_file_everything_is_refused_and_one_is_told_what_to_write(
    place: Place,
) -> None:
    told = place.refused(place.outside / "notes")

    assert told.startswith(f"{place.policy}, the allow-list of extra mounts, is missing")
    example = told.partition("for example: ")[2]
    place.policy.write_text(example)
    assert len(place.ask(place.outside / "notes")) == 1


def test_whoever_asks_for_nothing_needs_no_file(place: Place) -> None:
    assert place.ask() == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("\udcff", "is not valid JSON"),
        ("[]", "the whole must be an object"),
        ("{}", "allowedRoots must be a list"),
        ('{"allowedRoots": {}}', "allowedRoots must be a list"),
        ('{"allowedRoots": ["/srv"]}', "an allowed root must be an object"),
        ('{"allowedRoots": [{"path": "srv"}]}', "a path that begins with '/' or '~/'"),
        ('{"allowedRoots": [{"path": 7}]}', "a path that begins with '/' or '~/'"),
        ('{"allowedRoots": [{"path": "/", "allowReadWrite": 1}]}', "must be true or false"),
        ('{"allowedRoots": [{"path": "/", "readWrite": true}]}', "unknown key 'readWrite'"),
        ('{"allowedRoots": [], "blockedPattern": ["x"]}', "unknown key 'blockedPattern'"),
        ('{"allowedRoots": [], "blockedPatterns": "x"}', "must be a list of texts"),
        ('{"allowedRoots": [], "blockedPatterns": [""]}', "must be a list of texts"),
        ('{"allowedRoots": [], "nonMainReadOnly": "no"}', "must be true or false"),
    ],
)
def test_a_file_that_is_not_as_it_must_be_refuses_everything(
    place: Place, text: str, told: str
) -> None:
    place.policy.write_text(text, errors="surrogateescape")

    message = place.refused(place.outside / "notes")

    assert str(place.policy) in message
    assert told in message
    assert '{"allowedRoots": [{"path": ' in message


def test_a_file_that_cannot_be_read_refuses_everything(place: Place) -> None:
    place.policy.mkdir()

    assert "cannot be read: Is a directory" in place.refused(place.outside / "notes")


def test_a_change_acts_at_the_next_start(place: Place) -> None:
    place.allow(place.outside)
    assert len(place.ask(place.outside / "notes")) == 1

    place.allow(place.outside, blockedPatterns=["notes"])

    assert "'notes' in a path is blocked" in place.refused(place.outside / "notes")


# --- what is asked for ---------------------------------------------------------------------------


@pytest.mark.requirement("mount.extra.read-only-if-present")
def test_what_lies_below_a_root_is_shown_read_only(place: Place) -> None:
    place.allow(place.outside)

    (shown,) = place.ask(f"{place.outside}/notes:mine")

    assert shown == Granted(source=place.outside / "notes", name="mine", writable=False)


def test_what_lies_elsewhere_is_refused_and_named(place: Place, tmp_path: Path) -> None:
    place.allow(place.outside / "notes")
    (tmp_path / "other").mkdir()

    told = place.refused(place.outside / "notes", tmp_path / "other")

    assert f"{tmp_path}/other may not be mounted as other: it lies below none" in told
    assert str(place.policy) in told


def test_a_link_counts_as_what_it_leads_to(place: Place, tmp_path: Path) -> None:
    place.allow(place.outside)
    (tmp_path / "elsewhere").mkdir()
    (place.outside / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "into").symlink_to(place.outside / "notes")

    told = place.refused(place.outside / "link")
    assert f"{place.outside}/link (which is {tmp_path}/elsewhere) may not be mounted" in told
    (shown,) = place.ask(tmp_path / "into")
    assert shown.source == place.outside / "notes"


def test_a_root_may_be_a_link_itself(place: Place, tmp_path: Path) -> None:
    (tmp_path / "root").symlink_to(place.outside)
    place.allow(tmp_path / "root")

    assert len(place.ask(place.outside / "notes")) == 1


def test_what_is_not_there_is_refused(place: Place) -> None:
    place.allow(place.outside)
    (place.outside / "loop").symlink_to(place.outside / "loop")

    told = place.refused(place.outside / "gone")
    assert f"{place.outside}/gone, to be mounted as gone, cannot be used" in told
    assert "take it out of the mounts" in told
    assert "cannot be used" in place.refused(place.outside / "loop")


def test_only_folders_and_files_are_shown(place: Place) -> None:
    place.allow(place.outside)
    (place.outside / "list.txt").touch()
    os.mkfifo(place.outside / "pipe")

    assert len(place.ask(place.outside / "list.txt")) == 1
    assert "neither a folder nor a file" in place.refused(place.outside / "pipe")


def test_the_home_is_never_shown_by_whatever_way(place: Place, tmp_path: Path) -> None:
    place.allow(Path("/"), writable=True, nonMainReadOnly=False)
    (place.home / "groups").mkdir()
    (place.outside / "way").symlink_to(place.home / "policy")

    for path in (place.home, place.home / "groups", tmp_path, place.outside / "way"):
        assert "Hallporter keeps its own things there" in place.refused(f"{path}:x:rw")


# --- in a box ------------------------------------------------------------------------------------


EXTRA = "extra = Path(os.environ['HALLPORTER_WORKSPACE'], 'extra', 'mine')\n"
WRITE = (
    EXTRA
    + """
try:
    (extra / 'answer').write_text('done')
except OSError as error:
    say(error.strerror)
else:
    say((extra / 'note').read_text())
"""
)


def prepare(room: Room, outside: Path, *, is_writable: bool) -> None:
    outside.mkdir()
    (outside / "note").write_text("remember the milk")
    outside.chmod(0o777)  # a host that is root has its agents run as somebody else
    room.premises.mount_policy.parent.mkdir(parents=True)
    allow(room, outside, is_writable=is_writable)


def allow(room: Room, outside: Path, *, is_writable: bool) -> None:
    roots = [{"path": str(outside), "allowReadWrite": is_writable}]
    document = {"allowedRoots": roots, "nonMainReadOnly": False}
    room.premises.mount_policy.write_text(json.dumps(document))


def asking(outside: Path, sandbox: str) -> AgentSettings:
    mount = ExtraMount(path=str(outside), name="mine", writable=True)
    return replace(foreign("puppet.py", sandbox=sandbox), mounts=(mount,))


@pytest.mark.parametrize("sandbox", boxes.ADAPTERS)
async def test_an_agent_finds_it_in_its_box_and_writes_where_it_may(
    tmp_path: Path, sandbox: str
) -> None:
    outside = tmp_path / "outside"
    async with open_room(tmp_path, sandbox=sandbox) as room:
        prepare(room, outside, is_writable=True)
        room.strings().order(WRITE)

        (block,) = await room.turn("write", settings=asking(outside, sandbox))

    assert block.text == "remember the milk"
    assert (outside / "answer").read_text() == "done"


async def test_what_is_shown_read_only_cannot_be_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    async with open_room(tmp_path, sandbox="bubblewrap") as room:
        prepare(room, outside, is_writable=False)
        room.strings().order(WRITE)

        (block,) = await room.turn("write", settings=asking(outside, "bubblewrap"))

    assert block.text == "Read-only file system"
    assert not (outside / "answer").exists()


async def test_an_agent_whose_mount_is_refused_does_not_start(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        with pytest.raises(AgentRefusedError, match="the allow-list of extra mounts, is missing"):
            await room.turn("read", settings=asking(tmp_path, "process"))
        assert room.states() == {}


async def test_a_warm_agent_does_not_keep_what_it_may_no_longer_see(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    async with open_room(tmp_path) as room:
        prepare(room, outside, is_writable=True)
        settings = asking(outside, "process")
        room.strings().order(WRITE)
        await room.turn("write", settings=settings)
        assert room.states() == {"family": "warm"}

        room.premises.mount_policy.write_text('{"allowedRoots": []}')

        with pytest.raises(AgentRefusedError, match="below none of the allowed roots"):
            await room.turn("again", settings=settings, epoch=2, through=2)
        assert room.states() == {}


async def test_a_warm_agent_gives_way_to_one_that_sees_what_is_allowed_now(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    async with open_room(tmp_path) as room:
        prepare(room, outside, is_writable=False)
        settings = replace(demo(), mounts=asking(outside, "process").mounts)
        await room.turn("hello", settings=settings)
        first = room.pid()
        await room.turn("hello", settings=settings, epoch=2, through=2)
        assert room.pid() == first

        allow(room, outside, is_writable=True)
        await room.turn("hello", settings=settings, epoch=3, through=3)

        assert room.pid() != first
