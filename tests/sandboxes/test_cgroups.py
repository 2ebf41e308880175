from __future__ import annotations

from pathlib import Path

import pytest

from hallporter.domain.brief import Limits
from hallporter.domain.errors import AgentFailedError
from hallporter.sandboxes.cgroups import Fences, Hierarchy, find, settings, unenforced
from tests.sandboxes import boxes

ALL = Limits(memory=1 << 28, pids=64, cpus=1.5)


def unified(root: Path, path: str, *, controllers: str, handed_down: str) -> Path:
    """One folder of a version 2 tree as the kernel would fill it."""
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text(handed_down)
    (folder / "cgroup.procs").touch()
    return folder


def test_version_2_is_used_in_the_nearest_folder_that_hands_down(tmp_path: Path) -> None:
    unified(tmp_path, "", controllers="cpu memory pids", handed_down="cpu memory pids")
    slice_ = unified(tmp_path, "user.slice", controllers="memory pids", handed_down="memory pids")
    unified(tmp_path, "user.slice/host.service", controllers="", handed_down="")

    found = find(tmp_path, "0::/user.slice/host.service\n")

    assert found == (
        Hierarchy(parent=slice_, version=2, controllers=frozenset({"memory", "pids"})),
    )


def test_version_2_is_asked_for_what_is_not_handed_down_yet(tmp_path: Path) -> None:
    unified(tmp_path, "", controllers="hugetlb pids", handed_down="")

    find(tmp_path, "0::/\n")

    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"


def test_version_1_has_one_tree_for_each_controller(tmp_path: Path) -> None:
    for controller in ("memory", "pids", "freezer"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()

    assert find(tmp_path) == (
        Hierarchy(parent=tmp_path / "memory", version=1, controllers=frozenset({"memory"})),
        Hierarchy(parent=tmp_path / "pids", version=1, controllers=frozenset({"pids"})),
    )


def test_a_machine_without_control_groups_has_none(tmp_path: Path) -> None:
    assert find(tmp_path) == ()


def test_limits_in_the_words_of_version_2() -> None:
    everything = frozenset({"memory", "pids", "cpu"})
    hierarchy = Hierarchy(parent=Path("/x"), version=2, controllers=everything)

    assert settings(hierarchy, ALL) == {
        "memory.max": "268435456",
        "memory.swap.max": "0",
        "pids.max": "64",
        "cpu.max": "150000 100000",
    }


def test_limits_in_the_words_of_version_1() -> None:
    def words(controller: str) -> dict[str, str]:
        one = Hierarchy(parent=Path("/x"), version=1, controllers=frozenset({controller}))
        return settings(one, ALL)

    assert words("memory") == {
        "memory.limit_in_bytes": "268435456",
        "memory.memsw.limit_in_bytes": "268435456",
    }
    assert words("pids") == {"pids.max": "64"}
    assert words("cpu") == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"}


def test_without_limits_nothing_is_set() -> None:
    everything = frozenset({"memory", "pids", "cpu"})

    assert settings(Hierarchy(parent=Path("/x"), version=2, controllers=everything), Limits()) == {}


def test_each_limit_without_a_controller_is_told() -> None:
    some = Hierarchy(parent=Path("/x"), version=2, controllers=frozenset({"memory"}))

    assert [told.split(":")[0] for told in unenforced([some])] == ["pids limit", "cpus limit"]


def test_a_fence_is_made_with_its_limits_and_a_door(tmp_path: Path) -> None:
    hierarchy = Hierarchy(parent=tmp_path, version=2, controllers=frozenset({"pids"}))

    fence = Fences([hierarchy], installation="abc").put_up("agent-1", ALL)

    folder = tmp_path / "hallporter-abc-agent-1"
    assert (folder / "pids.max").read_text() == "64"
    assert fence.doors == (str(folder / "cgroup.procs"),)


def test_without_a_limit_there_is_no_fence_to_enter(tmp_path: Path) -> None:
    hierarchy = Hierarchy(parent=tmp_path, version=2, controllers=frozenset({"pids"}))

    fence = Fences([hierarchy], installation="abc").put_up("agent-1", Limits())

    assert fence.doors == ()
    assert boxes.names(tmp_path) == []


def test_a_limit_that_the_kernel_does_not_take_fails_the_start(tmp_path: Path) -> None:
    hierarchy = Hierarchy(parent=tmp_path / "gone", version=2, controllers=frozenset({"pids"}))

    with pytest.raises(AgentFailedError, match="limits could not be set"):
        Fences([hierarchy], installation="abc").put_up("agent-1", ALL)


async def test_a_sweep_removes_our_groups_and_nobody_elses(tmp_path: Path) -> None:
    hierarchy = Hierarchy(parent=tmp_path, version=1, controllers=frozenset({"pids"}))
    for name in ("hallporter-abc-1", "hallporter-abc-2", "hallporter-other-1", "docker"):
        (tmp_path / name).mkdir()

    Fences([hierarchy], installation="abc").sweep()

    assert boxes.names(tmp_path) == ["docker", "hallporter-other-1"]
