"""The input tray: all or nothing goes in, and nothing outside is ever touched."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallporter.agents.tray import Tray, ensure_folders
from hallporter.domain.errors import AgentFailedError
from hallporter_wire.follow_up import file_name
from tests.agents.room import batch, brief, foreign, next_block, open_room

NAME = file_name(1)
DEPTH = 3000  # deeper than Python recurses, and more than a process may have open files


@pytest.fixture
def ipc(tmp_path: Path) -> Path:
    ensure_folders(tmp_path / "ipc", ("input",))
    return tmp_path / "ipc"


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A folder outside that no agent may reach through us."""
    folder = tmp_path / "treasure"
    folder.mkdir()
    (folder / "gold").write_text("gold")
    (folder / NAME).write_text("silver")
    return folder


def is_untouched(treasure: Path) -> bool:
    found = {path.name: path.read_text() for path in treasure.iterdir()}
    return found == {"gold": "gold", NAME: "silver"}


@pytest.mark.requirement("input.file.path")
@pytest.mark.requirement("input.file.type")
@pytest.mark.requirement("input.file.text")
@pytest.mark.requirement("input.file.content")
async def test_a_follow_up_is_a_file_in_the_groups_input_folder(tmp_path: Path) -> None:
    async with open_room(tmp_path) as room:
        room.strings().order("say('one', through=1)")
        async with room.agents.seat(brief("one", settings=foreign("puppet.py"))) as seat:
            await next_block(seat)
            for number in (2, 3):
                await seat.feed(batch(f"number {number} < 4", number))
            files = sorted((tmp_path / "home/data/ipc/family/input").glob("*.json"))
            contents = [json.loads(file.read_text()) for file in files]

    assert [content["through"] for content in contents] == [2, 3]
    assert {content["type"] for content in contents} == {"message"}
    assert contents[0]["content"] == "number 2 < 4"
    assert ">number 2 &lt; 4</message>" in contents[0]["text"]


@settings(max_examples=50)
@given(contents=st.lists(st.binary(), max_size=12))
def test_what_goes_in_is_taken_out_whole_and_in_order(contents: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        ensure_folders(Path(folder), ("input",))
        tray = Tray(Path(folder))
        for number, content in enumerate(contents, 1):
            tray.put(file_name(number), content)

        taken = sorted(Path(folder, "input").iterdir())

        assert [file.read_bytes() for file in taken] == contents
        assert all(tray.has(file.name) for file in taken)
        tray.empty()
        assert not any(tray.has(file.name) for file in taken)


_NAMES = st.text("abc.é _", min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
_TREES = st.recursive(
    st.sampled_from(["file", "link", "fifo"]),
    lambda children: st.dictionaries(_NAMES, children, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50)
@given(tree=st.dictionaries(_NAMES, _TREES, max_size=5))
def test_whatever_an_agent_left_lying_is_removed_and_nothing_else(
    tree: dict[str, object],
) -> None:
    with TemporaryDirectory() as folder:
        outside = Path(folder, "outside")
        outside.mkdir()
        (outside / "gold").write_text("gold")
        ensure_folders(Path(folder, "ipc"), ("input", "messages"))
        _grow(Path(folder, "ipc", "input"), tree, outside)

        Tray(Path(folder, "ipc")).empty()

        assert list(Path(folder, "ipc", "input").iterdir()) == []
        assert (outside / "gold").read_text() == "gold"
        assert Path(folder, "ipc", "messages").is_dir()


def _grow(place: Path, tree: dict[str, object], outside: Path) -> None:
    for name, what in tree.items():
        path = place / name
        match what:
            case "file":
                path.touch()
            case "link":
                path.symlink_to(outside)
            case "fifo":
                os.mkfifo(path)
            case dict():
                path.mkdir()
                _grow(path, what, outside)


def test_folders_of_any_depth_are_removed(ipc: Path) -> None:
    here = os.open(ipc / "input", os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)

    Tray(ipc).empty()

    assert list((ipc / "input").iterdir()) == []


def _link(place: Path, treasure: Path) -> None:
    place.rmdir()
    place.symlink_to(treasure)


def _file(place: Path, treasure: Path) -> None:
    place.rmdir()
    place.write_text("not a folder")


def _nothing(place: Path, treasure: Path) -> None:
    place.rmdir()


def _folder_of_the_name(place: Path, treasure: Path) -> None:
    (place / NAME).mkdir()
    (place / NAME / "full").touch()


def _link_of_the_name_aside(place: Path, treasure: Path) -> None:
    (place / f".{NAME}.tmp").symlink_to(treasure / "gold")


SPOILERS = [_link, _file, _nothing, _folder_of_the_name]


@pytest.mark.rule("R7")
@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_spoilt_tray_takes_nothing_and_leads_nowhere(
    ipc: Path, treasure: Path, spoil: Callable[[Path, Path], None]
) -> None:
    tray = Tray(ipc)
    spoil(ipc / "input", treasure)

    with pytest.raises(AgentFailedError, match="input folder cannot be used"):
        tray.put(NAME, b"words")
    tray.close()

    assert is_untouched(treasure)


@pytest.mark.rule("R7")
def test_a_link_in_the_place_of_a_file_to_be_leads_nowhere(ipc: Path, treasure: Path) -> None:
    _link_of_the_name_aside(ipc / "input", treasure)

    Tray(ipc).put(NAME, b"words")

    assert is_untouched(treasure)
    assert (ipc / "input" / NAME).read_bytes() == b"words"


@pytest.mark.rule("R7")
@pytest.mark.parametrize("spoil", [*SPOILERS, _link_of_the_name_aside])
def test_a_spoilt_tray_is_put_right_for_the_next_agent(
    ipc: Path, treasure: Path, spoil: Callable[[Path, Path], None]
) -> None:
    tray = Tray(ipc)
    spoil(ipc / "input", treasure)

    tray.empty()
    tray.put(NAME, b"words")

    assert is_untouched(treasure)
    assert [path.name for path in (ipc / "input").iterdir()] == [NAME]
    assert (ipc / "input" / NAME).read_bytes() == b"words"
    assert not (ipc / "input").is_symlink()


def test_a_link_of_the_files_name_is_replaced_not_followed(ipc: Path, treasure: Path) -> None:
    (ipc / "input" / NAME).symlink_to(treasure / "gold")

    Tray(ipc).put(NAME, b"words")

    assert is_untouched(treasure)
    assert (ipc / "input" / NAME).read_bytes() == b"words"


def test_a_link_of_the_files_name_counts_as_lying_there(ipc: Path) -> None:
    (ipc / "input" / NAME).symlink_to("nowhere")

    assert Tray(ipc).has(NAME)


def test_folders_of_the_mailroom_that_are_links_are_put_right(
    tmp_path: Path, treasure: Path
) -> None:
    ipc = tmp_path / "ipc"
    ipc.mkdir()
    (ipc / "messages").symlink_to(treasure)
    (ipc / "tasks").write_text("not a folder")

    ensure_folders(ipc, ("messages", "tasks"))

    assert is_untouched(treasure)
    assert all((ipc / name).is_dir() for name in ("messages", "tasks"))
    assert not (ipc / "messages").is_symlink()


ATTACKS = {
    "a link": "INBOX.rmdir(); INBOX.symlink_to({treasure!r})",
    "a file": "INBOX.rmdir(); INBOX.write_text('x')",
    "a tree": "(INBOX / 'a/b/c').mkdir(parents=True); (INBOX / 'a/b/l').symlink_to({treasure!r})",
    "our next name": "(INBOX / '000000000001.json' / 'x').mkdir(parents=True)",
}


@pytest.mark.rule("R7")
@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
@pytest.mark.parametrize("attack", ATTACKS)
async def test_an_agent_cannot_lead_us_out_of_its_input_folder(
    tmp_path: Path, treasure: Path, sandbox: str, attack: str
) -> None:
    spoil = ATTACKS[attack].format(treasure=str(treasure))
    puppet = foreign("puppet.py", sandbox=sandbox)
    async with open_room(tmp_path, sandbox=sandbox) as room:
        room.strings().order(f"{spoil}; say('spoilt', through=1)")
        await room.turn("one", settings=puppet, epoch=1)
        await room.strings().do("DOING.unlink(); time.sleep(600)")
        room.strings().order("say('fine', through=2)")
        (block,) = await room.turn("two", settings=puppet, epoch=3, through=2)

        assert block.text == "fine"
        assert room.input().is_dir()
        assert not room.input().is_symlink()
        assert list(room.input().iterdir()) == []
    assert is_untouched(treasure)
