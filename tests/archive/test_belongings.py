"""A group's files go wherever their disk is: really mounted, in a namespace of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from hallporter.domain.ids import Folder
from hallporter.stores.belongings import Belongings

FAMILY = Folder("family")

# Within the mounts: makes a memory unless there is one, forgets it, and says what is left.
FORGET = """
import asyncio, pathlib, sys
from hallporter.domain.errors import RefusedError
from hallporter.stores.belongings import Belongings

home = pathlib.Path(sys.argv[1])
memory = home / "groups" / "family" / "memory.md"
if not memory.exists():
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text("a secret")

async def main():
    belongings = Belongings(home)
    await belongings.set_aside(["family"])
    count = await belongings.destroy()
    print(count, [path.name for path in sorted((home / "groups").rglob("*"))])

try:
    asyncio.run(main())
except RefusedError as error:
    print(error.message)
"""


async def forget_within(home: Path, *mounts: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *("bwrap", "--dev-bind", "/", "/", *mounts),
        *(sys.executable, "-c", FORGET, str(home)),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(20):
        out, _ = await process.communicate()
    return out.decode().strip()


async def test_all_groups_may_be_on_another_disk(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    assert await forget_within(tmp_path, "--tmpfs", str(tmp_path / "groups")) == "1 []"


async def test_one_group_may_be_on_a_disk_of_its_own_which_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "groups" / "family").mkdir(parents=True)
    told = await forget_within(tmp_path, "--tmpfs", str(tmp_path / "groups" / "family"))
    assert told == "1 ['family']"


async def test_what_cannot_be_removed_is_named_and_kept(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    (groups / "family").mkdir(parents=True)
    (groups / "family" / "memory.md").write_text("a secret")
    told = await forget_within(tmp_path, "--ro-bind", str(groups), str(groups))
    assert told.startswith(f"{groups}/family cannot be removed: Read-only file system")
    assert told.endswith("mend that, and ask for its removal again")
    assert (groups / "family" / "memory.md").exists()


@pytest.mark.parametrize("linked", ["groups", "groups/family"])
async def test_what_lies_elsewhere_behind_a_link_of_the_operator_s_goes(
    tmp_path: Path, linked: str
) -> None:
    home, disk = tmp_path / "home", tmp_path / "disk"
    (home / linked).parent.mkdir(parents=True)
    disk.mkdir()
    (home / linked).symlink_to(disk)
    memory = home / "groups" / "family" / "memory.md"
    memory.parent.mkdir(exist_ok=True)
    memory.write_text("a secret")
    belongings = Belongings(home)
    await belongings.set_aside([FAMILY])
    assert await belongings.destroy() == 1
    assert list(disk.iterdir()) == []
