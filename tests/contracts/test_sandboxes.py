"""What every sandbox keeps: one test for each clause of the port."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hallporter.domain.brief import Limits, Mount
from hallporter.domain.errors import AgentRefusedError
from hallporter.ports import Sandbox
from hallporter.sandboxes import machine
from tests.sandboxes import boxes

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=boxes.ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def installation() -> str:
    return secrets.token_hex(4)


@pytest.fixture
async def sandbox(adapter: str, installation: str, tmp_path: Path) -> AsyncIterator[Sandbox]:
    made = boxes.make(adapter, installation, tmp_path / "run")
    yield made
    await made.sweep()


@pytest.fixture
def group(tmp_path: Path) -> Mount:
    (tmp_path / "group").mkdir()
    return Mount(source=tmp_path / "group", target="/workspace/group", writable=True)


async def test_the_probe_says_that_it_works(sandbox: Sandbox) -> None:
    assert (await sandbox.probe()).problem == ""


@pytest.mark.requirement("sandbox.container.interactive-stdin")
async def test_what_is_written_to_stdin_comes_back_on_stdout(sandbox: Sandbox) -> None:
    words = b"\x00\xff words\n" * 100_000

    box = await sandbox.launch(boxes.launch("cat"))
    async with asyncio.timeout(boxes.PATIENCE):
        box.stdin.write(words)
        box.stdin.close()
        heard = await box.stdout.read()

    assert heard == words
    assert await boxes.end(box) == 0


async def test_stderr_is_heard_apart_from_stdout(sandbox: Sandbox) -> None:
    heard = await boxes.run(sandbox, boxes.shell("echo out; echo err >/dev/stderr"))

    assert heard == (0, "out\n", "err\n")


async def test_the_exit_code_is_the_programs(sandbox: Sandbox) -> None:
    assert (await boxes.run(sandbox, boxes.shell("exit 42")))[0] == 42


async def test_a_program_that_a_signal_ended_exits_with_128_and_its_number(
    sandbox: Sandbox,
) -> None:
    assert (await boxes.run(sandbox, boxes.shell("kill -SEGV $$")))[0] == 128 + 11


async def test_everyone_who_waits_gets_the_exit_code(sandbox: Sandbox) -> None:
    box = await sandbox.launch(boxes.shell("exit 3"))

    async with asyncio.timeout(boxes.PATIENCE):
        assert set(await asyncio.gather(box.wait(), box.wait())) == {3}
    assert await boxes.end(box) == 3


async def test_the_environment_is_what_was_given_and_a_documented_few(sandbox: Sandbox) -> None:
    _, out, _ = await boxes.run(
        sandbox, boxes.launch("env", environment={"TZ": "Asia/Shanghai", "ANSWER": "4 2"})
    )

    told = dict(line.split("=", 1) for line in out.splitlines())
    assert (told.pop("TZ"), told.pop("ANSWER")) == ("Asia/Shanghai", "4 2")
    assert told.pop("PATH") == machine.PATH
    assert told.pop("LANG") == machine.LANG
    assert told.pop("HOME").endswith("/home/node")
    assert told.keys() <= {"PWD", "HALLPORTER_WORKSPACE", "HALLPORTER_BOX", "CLAUDE_CONFIG_DIR"}


async def test_what_was_given_beats_the_documented_few(sandbox: Sandbox) -> None:
    _, out, _ = await boxes.run(
        sandbox, boxes.launch("/usr/bin/env", environment={"PATH": "/usr/bin", "LANG": "C"})
    )

    assert {"PATH=/usr/bin", "LANG=C"} <= set(out.splitlines())


async def test_home_can_be_written(sandbox: Sandbox) -> None:
    assert (await boxes.run(sandbox, boxes.shell('echo x >"$HOME/x" && cat "$HOME/x"')))[1] == "x\n"


async def test_a_writable_mount_is_written_and_the_host_can_read_it(
    sandbox: Sandbox, group: Mount
) -> None:
    (group.source / "asked").write_text("what?")

    code, out, err = await boxes.run(
        sandbox,
        boxes.launch(
            *("sh", "-c", "cat asked; mkdir -p a/b; echo this >a/b/answer; rm asked"),
            mounts=(group,),
            workdir="/workspace/group",
        ),
    )

    assert (code, out, err) == (0, "what?", "")
    assert (group.source / "a/b/answer").read_text() == "this\n"
    assert not (group.source / "asked").exists()


async def test_what_the_host_adds_later_can_be_changed_by_the_next_box(
    sandbox: Sandbox, group: Mount
) -> None:
    add = boxes.launch(
        *("sh", "-c", "for f in */note; do echo more >>$f; done"),
        mounts=(group,),
        workdir="/workspace/group",
    )
    for folder in ("first", "second"):
        (group.source / folder).mkdir()
        (group.source / folder / "note").write_text("note\n")
        box = await sandbox.launch(add)
        assert (await boxes.finish(box))[0] == 0

    assert (group.source / "second/note").read_text() == "note\nmore\n"


async def test_a_mount_below_a_scratch_folder_is_seen(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "claude").mkdir()
    mount = Mount(source=tmp_path / "claude", target="/home/node/.claude", writable=True)

    await boxes.run(
        sandbox, boxes.launch("sh", "-c", 'echo me >"$HOME/.claude/memory"', mounts=(mount,))
    )

    assert (tmp_path / "claude/memory").read_text() == "me\n"


async def test_the_program_begins_in_its_workdir(sandbox: Sandbox, group: Mount) -> None:
    (group.source / "here").touch()

    heard = await boxes.run(
        sandbox, boxes.launch("ls", mounts=(group,), workdir="/workspace/group")
    )

    assert heard == (0, "here\n", "")


async def test_a_program_may_lie_in_a_mount(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/agent").write_text("#!/bin/sh\necho I run\n")
    (tmp_path / "app/agent").chmod(0o755)
    app = Mount(source=tmp_path / "app", target="/app", writable=False)

    assert await boxes.run(sandbox, boxes.launch("/app/agent", mounts=(app,))) == (0, "I run\n", "")


async def test_the_running_python_runs_inside(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/runner.py").write_text("import ssl, sqlite3, sys; print(sys.version)")
    app = Mount(source=tmp_path / "app", target="/app", writable=False)

    heard = await boxes.run(
        sandbox, boxes.launch(machine.interpreter(), "/app/runner.py", mounts=(app,))
    )

    assert heard == (0, f"{sys.version}\n", "")


@pytest.mark.parametrize("program", ["no-such-program", "/usr/bin/no-such-program"])
async def test_a_program_that_is_not_there_is_refused(sandbox: Sandbox, program: str) -> None:
    with pytest.raises(AgentRefusedError, match="no-such-program"):
        await sandbox.launch(boxes.launch(program))


async def test_a_program_that_is_not_executable_is_refused(sandbox: Sandbox, group: Mount) -> None:
    (group.source / "agent").write_text("#!/bin/sh\n")

    with pytest.raises(AgentRefusedError, match=r"not executable: chmod \+x"):
        await sandbox.launch(boxes.launch("./agent", mounts=(group,), workdir="/workspace/group"))


async def test_a_command_without_words_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(AgentRefusedError, match="no command"):
        await sandbox.launch(boxes.launch())


async def test_a_mount_of_something_that_is_not_there_is_refused(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    nowhere = Mount(source=tmp_path / "nowhere", target="/workspace/extra", writable=False)

    with pytest.raises(AgentRefusedError, match="nowhere"):
        await sandbox.launch(boxes.launch("true", mounts=(nowhere,)))


@pytest.mark.parametrize("target", ["workspace", "/workspace/../etc", "/"])
async def test_a_mount_at_an_impossible_place_is_refused(
    sandbox: Sandbox, tmp_path: Path, target: str
) -> None:
    with pytest.raises(AgentRefusedError, match="absolute path"):
        await sandbox.launch(
            boxes.launch("true", mounts=(Mount(source=tmp_path, target=target, writable=False),))
        )


async def test_a_workdir_that_is_not_there_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(AgentRefusedError, match="/workspace/nowhere"):
        await sandbox.launch(boxes.launch("true", workdir="/workspace/nowhere"))


@pytest.mark.parametrize(("how", "name"), [("terminate", "TERM"), ("interrupt", "INT")])
async def test_a_signal_reaches_the_program(sandbox: Sandbox, how: str, name: str) -> None:
    box = await sandbox.launch(
        boxes.shell(f'trap "echo got {name}; exit 7" {name}; echo ready; read x')
    )
    assert await boxes.line(box) == "ready"

    getattr(box, how)()

    assert await boxes.line(box) == f"got {name}"
    assert await boxes.end(box) == 7


async def test_one_that_ignores_signals_is_killed(sandbox: Sandbox) -> None:
    box = await sandbox.launch(
        boxes.shell('trap "" TERM INT; echo ready; while read x; do echo "still here: $x"; done')
    )
    assert await boxes.line(box) == "ready"
    box.terminate()
    box.interrupt()
    box.stdin.write(b"hello\n")
    assert await boxes.line(box) == "still here: hello"

    box.kill()

    assert await boxes.end(box) == 128 + 9


async def test_one_killed_before_it_began_leaves_nothing(sandbox: Sandbox) -> None:
    seconds = boxes.odd_seconds()
    box = await sandbox.launch(boxes.launch("sleep", seconds))

    box.kill()

    assert await boxes.end(box) == 128 + 9
    assert not boxes.sleepers(seconds)


async def test_a_signal_to_one_that_has_ended_is_no_error(sandbox: Sandbox) -> None:
    box = await sandbox.launch(boxes.launch("true"))
    assert await boxes.end(box) == 0

    box.interrupt()
    box.terminate()
    box.kill()


async def test_what_it_forked_is_gone_after_a_kill(sandbox: Sandbox) -> None:
    seconds = boxes.odd_seconds()
    box = await sandbox.launch(boxes.forking(seconds))
    assert [await boxes.line(box), await boxes.line(box)] == ["up", "up"]
    assert len(boxes.sleepers(seconds)) >= 3

    box.kill()

    assert await boxes.end(box) == 128 + 9
    assert not boxes.sleepers(seconds)


@pytest.mark.requirement("sandbox.container.removed-at-exit")
async def test_what_it_forked_is_gone_after_its_end(sandbox: Sandbox) -> None:
    seconds = boxes.odd_seconds()
    box = await sandbox.launch(boxes.forking(seconds))
    assert [await boxes.line(box), await boxes.line(box)] == ["up", "up"]

    box.stdin.write(b"go\n")

    assert await boxes.end(box) == 0
    assert not boxes.sleepers(seconds)


async def test_nothing_outlives_a_killed_host(
    adapter: str, sandbox: Sandbox, installation: str, tmp_path: Path
) -> None:
    seconds = boxes.odd_seconds()
    words = [adapter, installation, str(tmp_path / "run"), seconds]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.sandboxes.host", *words], cwd=ROOT, stdout=subprocess.PIPE
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"up up\n"
        left = boxes.sleepers(seconds)
        assert len(left) >= 3

        host.kill()

    if adapter == "process":
        # Nothing ties a stray to a host but its mark: the next host ends it.
        assert await sandbox.sweep() == 1
    assert boxes.all_gone(left)
    assert not boxes.sleepers(seconds)


async def test_a_sweep_ends_what_this_installation_left_and_nothing_else(
    adapter: str, sandbox: Sandbox, installation: str, tmp_path: Path
) -> None:
    neighbour = boxes.make(adapter, f"{installation}0", tmp_path / "neighbour")
    ours = await sandbox.launch(boxes.shell("echo ready; read x"))
    theirs = await neighbour.launch(boxes.shell("echo ready; read x"))
    assert (await boxes.line(ours), await boxes.line(theirs)) == ("ready", "ready")

    swept = await boxes.make(adapter, installation, tmp_path / "run").sweep()

    assert swept == 1
    assert await boxes.end(ours) == 128 + 9
    theirs.stdin.write(b"go\n")
    assert await boxes.end(theirs) == 0


async def test_a_sweep_of_nothing_is_none(sandbox: Sandbox) -> None:
    assert await sandbox.sweep() == 0


async def test_a_box_that_ended_leaves_no_open_file(sandbox: Sandbox) -> None:
    await boxes.run(sandbox, boxes.launch("true"))
    before = boxes.open_files()

    await boxes.run(sandbox, boxes.launch("true"))
    with pytest.raises(AgentRefusedError):
        await sandbox.launch(boxes.launch("no-such-program"))

    assert boxes.open_files() == before


async def test_the_memory_limit_holds_or_is_reported(sandbox: Sandbox) -> None:
    hog = boxes.launch(
        *(machine.interpreter(), "-c", "x = bytearray(160 << 20); print(len(x))"),
        limits=Limits(memory=64 << 20),
    )

    code, _, _ = await boxes.run(sandbox, hog)

    told = [limit for limit in (await sandbox.probe()).unenforced if limit.startswith("memory")]
    assert code == (0 if told else 128 + 9)


async def test_the_pids_limit_holds_or_is_reported(sandbox: Sandbox) -> None:
    forker = boxes.launch(
        machine.interpreter(),
        "-c",
        "import os, signal\n"
        "n = 0\n"
        "try:\n"
        "    while n < 40:\n"
        "        if not os.fork(): signal.pause()\n"
        "        n += 1\n"
        "except OSError: pass\n"
        "print(n)\n",
        limits=Limits(pids=20),
    )

    box = await sandbox.launch(forker)
    count = int(await boxes.line(box))
    await boxes.end(box)

    told = [limit for limit in (await sandbox.probe()).unenforced if limit.startswith("pids")]
    assert count == 40 if told else 15 <= count < 20


async def test_a_limited_box_leaves_no_control_group(sandbox: Sandbox, installation: str) -> None:
    limits = Limits(memory=64 << 20, pids=20, cpus=0.5)

    assert (await boxes.run(sandbox, boxes.shell("true", limits=limits)))[0] == 0

    assert not list(Path("/sys/fs/cgroup").glob(f"**/hallporter-{installation}-*"))
