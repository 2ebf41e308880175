from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hallporter.agents.dry_start import dry_start
from hallporter.agents.launching import Equipment
from hallporter.agents.source import readable_source
from hallporter.agents.tool_server import install
from hallporter.agents.workspace import Premises
from hallporter.doctor import boxes
from hallporter.doctor.boxes import DryStart
from hallporter.doctor.examining import judge_rooms, mended, together
from hallporter.domain.brief import AgentSettings, Fitness, Limits
from hallporter.domain.errors import AgentFailedError, AgentRefusedError
from hallporter.domain.extra_mount import ExtraMount
from hallporter.domain.finding import Level, SweepBoxes, good, problem
from hallporter.domain.group import Group
from hallporter.domain.ids import ChatId, Folder
from hallporter.home import Home, installation, open_home
from hallporter.ports import EngineHealth, Health, Sandbox
from hallporter.sandboxes import leftovers
from hallporter.sandboxes.bubblewrap import Bubblewrap
from hallporter.sandboxes.cgroups import Fences, Hierarchy, find
from hallporter.sandboxes.machine import interpreter
from hallporter.sandboxes.process import Process
from hallporter.sandboxes.stock import Stock
from hallporter.switchboard.status import Report, SandboxInfo
from tests.fakes.clock import FakeClock
from tests.switchboard.house import SETTINGS

WHERE = "there: command in [agent] of hallporter.toml"
PATIENCE = 30.0  # seconds: for a box on a busy machine
SOURCE = Path(__file__).parents[2] / "src"


def info(**fitness: object) -> SandboxInfo:
    is_chosen = "problem" not in fitness
    why = "the strongest" if is_chosen else "nothing works"
    return SandboxInfo(
        name="bubblewrap",
        fitness=Fitness(**fitness),  # type: ignore[arg-type]
        is_chosen=is_chosen,
        why=why,
    )


# --- sandboxes ----------------------------------------------------------------------------------


def test_a_sandbox_that_works_is_told() -> None:
    (found,) = boxes.judge_sandboxes([info()])
    assert (found.level, found.what) == (Level.OK, "bubblewrap works: the strongest")


def test_a_limit_that_cannot_be_kept_says_what_to_do() -> None:
    told = ("memory limit: no control group; run as root", "system call filter: none")
    _, limit, filter_ = boxes.judge_sandboxes([info(unenforced=told)])
    assert limit.level is Level.WARNING
    assert (limit.what, limit.do) == ("bubblewrap: memory limit: no control group", "run as root")
    assert filter_.do


def test_a_sandbox_without_walls_is_warned_about() -> None:
    _, found = boxes.judge_sandboxes([info(warnings=("it protects nothing",))])
    assert found.level is Level.WARNING
    assert "it protects nothing" in found.what


@pytest.mark.parametrize("tried", [[info(problem="no namespaces")], []])
def test_no_sandbox_at_all_is_a_problem(tried: list[SandboxInfo]) -> None:
    found = boxes.judge_sandboxes(tried)[-1]
    assert found.is_wrong
    assert "no sandbox can be used" in found.what


async def test_a_machine_without_bubblewrap_is_told_what_to_install(tmp_path: Path) -> None:
    stock = Stock([Bubblewrap(installation="0badcafe", path=str(tmp_path))], "auto")
    await stock.probe()
    found = boxes.judge_sandboxes(stock.report())[-1]
    assert found.is_wrong
    assert "apt-get install bubblewrap" in found.what


# --- agents -------------------------------------------------------------------------------------


def group(folder: str = "family") -> Group:
    return Group(
        chat=ChatId(f"web:{folder}"),
        name=folder.title(),
        folder=Folder(folder),
        trigger="@Andy",
        requires_trigger=True,
        is_main=False,
        added_at=FakeClock().now(),
    )


def command(*words: str) -> AgentSettings:
    return AgentSettings(
        kind="command",
        sandbox="auto",
        command=words,
        timeout=SETTINGS.timeout,
        idle_timeout=SETTINGS.idle_timeout,
        memory=256 << 20,
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


@pytest.fixture(params=["bubblewrap", "process"])
def sandbox(request: pytest.FixtureRequest, home: Home) -> Sandbox:
    if request.param == "process":
        return Process(installation=installation(home), run_dir=home.run_dir / "boxes")
    return Bubblewrap(installation=installation(home))


async def start(
    home: Home, sandbox: Sandbox, settings: AgentSettings, python: str | None = None
) -> DryStart:
    equipment = Equipment(
        premises=Premises(home=home.path, source=readable_source(SOURCE, home.run_dir / "source")),
        python=python or interpreter(),
        tool_server=install(home.run_dir / "bin", python=interpreter(), libraries=()),
        max_output_size=1000,
    )
    async with asyncio.timeout(PATIENCE):
        seen = await dry_start(
            group(),
            settings,
            equipment=equipment,
            sandbox=sandbox,
            now=FakeClock().now(),
            timezone="UTC",
        )
    return DryStart(
        folder="family",
        kind=settings.kind,
        trouble=seen.trouble,
        missing=seen.missing,
        notes=seen.notes,
        where_to_change=WHERE,
    )


async def test_the_demo_agent_can_start(home: Home, sandbox: Sandbox) -> None:
    settings = AgentSettings(
        kind="demo", sandbox="auto", timeout=SETTINGS.timeout, idle_timeout=SETTINGS.idle_timeout
    )
    assert (await start(home, sandbox, settings)).trouble == ""


async def test_a_program_that_is_there_can_start_and_is_not_run(
    home: Home, sandbox: Sandbox
) -> None:
    said = home.path / "groups" / "family" / "said"
    seen = await start(home, sandbox, command("touch", "/workspace/group/said"))
    assert seen.trouble == ""
    assert not said.exists()


async def test_a_missing_program_is_told(home: Home, sandbox: Sandbox) -> None:
    seen = await start(home, sandbox, command("no-such-program"))
    (found,) = boxes.judge_agents([seen])
    assert found.is_wrong
    assert "the program no-such-program is not there" in found.what
    assert found.do == f"mend what it says, or change it {WHERE}"


async def test_a_program_without_its_interpreter_is_told(home: Home, sandbox: Sandbox) -> None:
    folder = home.path / "groups" / "family"
    folder.mkdir()
    (folder / "agent").write_text("#!/nowhere/python\n")
    (folder / "agent").chmod(0o755)
    seen = await start(home, sandbox, command("./agent"))
    assert seen.trouble == "the program ./agent needs /nowhere/python, which is not there"


async def test_a_path_in_the_command_that_is_not_there_is_told(
    home: Home, sandbox: Sandbox
) -> None:
    seen = await start(home, sandbox, command("python3", "/nowhere/agent.py"))
    (found,) = boxes.judge_agents([seen])
    assert found.level is Level.WARNING
    assert "names /nowhere/agent.py" in found.what
    assert found.do.endswith(WHERE)


async def test_settings_that_no_start_survives_are_told(home: Home, sandbox: Sandbox) -> None:
    with pytest.raises((AgentRefusedError, AgentFailedError)) as refused:
        await start(home, sandbox, command("cat", str(home.path)))
    (found,) = boxes.judge_agents([boxes.refused("family", refused.value, WHERE)])
    assert found.is_wrong
    assert "the whole home lies in it" in found.what


async def test_a_mount_that_would_be_refused_is_told(home: Home, sandbox: Sandbox) -> None:
    mount = ExtraMount(path="/srv", name="mine")
    with pytest.raises(AgentRefusedError) as refused:
        await start(home, sandbox, replace(command("cat"), mounts=(mount,)))
    (found,) = boxes.judge_agents([boxes.refused("family", refused.value, WHERE)])
    assert found.is_wrong
    assert f"{home.path}/policy/mounts.json, the allow-list of extra mounts, is missing" in (
        found.what
    )
    assert refused.value.facts["setting"] == "mounts"


async def test_a_mount_that_is_less_than_was_asked_for_is_told(
    home: Home, sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (home.path / "policy").mkdir(exist_ok=True)
    roots = [{"path": str(tmp_path / "notes"), "allowReadWrite": True}]
    (home.path / "policy/mounts.json").write_text(json.dumps({"allowedRoots": roots}))
    mount = ExtraMount(path=str(tmp_path / "notes"), name="mine", writable=True)

    seen = await start(home, sandbox, replace(command("cat"), mounts=(mount,)))

    (found,) = boxes.judge_agents([seen])
    assert found.level is Level.WARNING
    assert "mine is mounted read-only: only main may write to extra mounts" in found.what


async def test_a_box_in_which_nothing_runs_is_told(home: Home, sandbox: Sandbox) -> None:
    with pytest.raises(AgentFailedError, match="ended with 1: no word"):
        await start(home, sandbox, command("cat"), python="/usr/bin/false")


def test_a_network_setting_without_effect_is_told() -> None:
    moot = DryStart(folder="family", kind="demo", sandbox="process", is_network_moot=True)
    (found,) = boxes.judge_agents([moot])
    assert found.level is Level.WARNING
    assert "'network' has no effect" in found.what


def test_an_agent_that_can_start_is_told() -> None:
    (found,) = boxes.judge_agents([DryStart(folder="main", kind="demo", sandbox="bubblewrap")])
    assert found.what == "the agent of 'main' (demo) can start in bubblewrap"


# --- what was left ------------------------------------------------------------------------------


async def test_a_box_of_an_earlier_host_is_found_and_ended(home: Home) -> None:
    label = installation(home)
    stray = await asyncio.create_subprocess_exec(
        "sleep", "600", env={**os.environ, leftovers.MARK: f"{label}/old-box"}
    )
    (home.run_dir / "boxes" / "old-view").mkdir(parents=True)
    names = boxes.left_by_others(home, label, live=())
    (found,) = boxes.judge_left(names, is_serving=False)
    stock = Stock(
        [
            Bubblewrap(installation=label),
            Process(installation=label, run_dir=home.run_dir / "boxes"),
        ],
        "auto",
    )
    (done,) = await mended([found], sweep=stock.sweep)
    async with asyncio.timeout(PATIENCE):
        await stray.wait()
    assert names == {"old-box", "old-view"}
    assert found.fix == SweepBoxes()
    assert done.mended
    assert boxes.left_by_others(home, label, live=()) == frozenset()


async def test_empty_control_groups_of_a_killed_host_are_found_and_removed(home: Home) -> None:
    label = installation(home)
    fences = Fences(find(), installation=label)  # none where the kernel gives us none
    fences.put_up("old-fence", Limits(memory=64 << 20, pids=10))
    names = boxes.left_by_others(home, label, live=())
    stock = Stock([Bubblewrap(installation=label)], "auto")
    await mended(boxes.judge_left(names, is_serving=False), sweep=stock.sweep)
    assert names == ({"old-fence"} if find() else frozenset())
    assert fences.names() == frozenset()


def test_one_box_is_one_box() -> None:
    (one,) = boxes.judge_left({"a"}, is_serving=False)
    (two,) = boxes.judge_left({"a", "b"}, is_serving=False)
    assert one.what == "1 box was left behind: a"
    assert two.what == "2 boxes were left behind: a, b"


def test_the_box_of_a_live_agent_is_not_left_behind(home: Home) -> None:
    (home.run_dir / "boxes" / "hallporter-main-1").mkdir(parents=True)
    label = installation(home)
    assert boxes.left_by_others(home, label, live={"hallporter-main-1"}) == frozenset()


def test_what_is_left_under_a_running_host_waits_for_its_restart() -> None:
    (found,) = boxes.judge_left({"old-box"}, is_serving=True)
    assert found.level is Level.WARNING
    assert found.fix is None
    assert "restart" in found.do


def test_control_groups_are_known_by_their_boxes(tmp_path: Path) -> None:
    hierarchy = Hierarchy(parent=tmp_path, version=2, controllers=frozenset({"pids"}))
    for name in ("hallporter-0badcafe-old", "hallporter-11111111-other", "system.slice"):
        (tmp_path / name).mkdir()
    fences = Fences([hierarchy], installation="0badcafe")
    assert fences.names() == {"old"}
    fences.sweep()
    assert fences.names() == frozenset()


# --- the rooms of a running host, and the order of it all ---------------------------------------


def report(*, channel: Health, is_engine_ok: bool) -> Report:
    return Report(
        channels={"web": channel},
        engine=EngineHealth(
            ok=is_engine_ok, why="", waiting=0, running=0, oldest_wait=None, pools={}
        ),
        agents=(),
        sandboxes=(),
        messages={},
        outbox={},
        failures=(),
        notices=(),
        groups=1,
        tasks={},
        next_tick=None,
        store=Health(ok=True),
    )


def test_a_channel_or_an_engine_that_does_not_work_is_told() -> None:
    well = judge_rooms(report(channel=Health(ok=True), is_engine_ok=True))
    ill = judge_rooms(report(channel=Health(ok=False, why="logged out"), is_engine_ok=False))
    assert [one.level for one in well] == [Level.OK]
    assert [one.about for one in ill] == ["channels", "engine"]
    assert all(one.is_wrong and one.do for one in ill)
    assert "logged out" in ill[0].what


def test_what_is_still_there_was_not_mended() -> None:
    fix = SweepBoxes()
    before = problem("boxes", "two were left", "end them", fix)
    (still,) = together([replace(before, mended="they were ended")], [before])
    mended_, after = together([replace(before, mended="they were ended")], [good("boxes", "none")])
    (tried,) = together([replace(before, do="end them (it was tried: no)")], [before])
    assert still.is_wrong
    assert (mended_.is_wrong, mended_.mended, after.level) == (False, "they were ended", Level.OK)
    assert tried.do == "end them (it was tried: no)"
