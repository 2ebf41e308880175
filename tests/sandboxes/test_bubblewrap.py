"""What bubblewrap keeps beyond the contract: the walls, tried from inside."""

from __future__ import annotations

import asyncio
import errno
import json
import platform
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hallporter.domain.brief import Mount
from hallporter.domain.errors import AgentFailedError, AgentRefusedError
from hallporter.sandboxes import machine, seccomp
from hallporter.sandboxes.bubblewrap import Bubblewrap
from tests.sandboxes import boxes


@pytest.fixture
async def sandbox() -> AsyncIterator[Bubblewrap]:
    made = Bubblewrap(installation=secrets.token_hex(4))
    yield made
    await made.sweep()


async def shout(sandbox: Bubblewrap, script: str) -> str:
    code, out, err = await boxes.run(sandbox, boxes.shell(script))
    assert (code, err) == (0, "")
    return out.strip()


async def python(sandbox: Bubblewrap, script: str, *words: str) -> object:
    """What a script prints as JSON, run inside."""
    code, out, err = await boxes.run(
        sandbox, boxes.launch(machine.interpreter(), "-I", "-c", script, *words)
    )
    assert (code, err) == (0, "")
    told: object = json.loads(out)
    return told


@pytest.mark.requirement("sandbox.container.non-root-user")
async def test_the_program_is_root_neither_inside_nor_outside(sandbox: Bubblewrap) -> None:
    seconds = boxes.odd_seconds()
    box = await sandbox.launch(boxes.shell('id -u; sleep "$1"; :', seconds))
    inside = await boxes.line(box)
    outside = {
        Path(f"/proc/{pid}/comm").read_text().strip(): Path(f"/proc/{pid}/status").read_text()
        for pid in boxes.sleepers(seconds)
    }
    box.kill()
    await boxes.end(box)

    assert inside == "1000"
    program = outside["sh"]
    assert "0" not in program.split("\nUid:")[1].splitlines()[0].split()
    assert "0" not in program.split("\nGid:")[1].splitlines()[0].split()
    assert "0" not in program.split("\nGroups:")[1].splitlines()[0].split()


async def test_no_namespace_is_shared_with_the_host(sandbox: Bubblewrap) -> None:
    kinds = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")

    inside = await shout(sandbox, f"cd /proc/self/ns && readlink {' '.join(kinds)}")

    outside = [str(Path("/proc/self/ns", kind).readlink()) for kind in kinds]
    assert not set(inside.splitlines()) & set(outside)


async def test_the_network_is_the_loopback_alone(sandbox: Bubblewrap) -> None:
    assert await shout(sandbox, "sed -n 's/^ *\\([a-z0-9]*\\):.*/\\1/p' /proc/net/dev") == "lo"


async def test_there_are_no_capabilities_and_no_way_to_more(sandbox: Bubblewrap) -> None:
    told = await shout(sandbox, "cat /proc/self/status")

    status = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
    assert {int(status[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


async def test_nothing_of_the_host_is_seen_but_what_is_mounted(
    sandbox: Bubblewrap, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("KEY=secret")
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups/ours").mkdir()
    mount = Mount(source=tmp_path / "groups/ours", target="/workspace/group", writable=True)

    code, out, err = await boxes.run(
        sandbox,
        boxes.launch(
            *("sh", "-c", 'cat "$1/.env" ../.env ../../.env; ls /workspace /home; ls -A /tmp'),
            *("sh", str(tmp_path)),
            mounts=(mount,),
            workdir="/workspace/group",
        ),
    )

    assert (code, out) == (0, "/home:\nnode\n\n/workspace:\ngroup\n")
    assert err.count("No such file") == 3


async def test_a_link_out_of_a_mount_leads_nowhere(sandbox: Bubblewrap, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "group").mkdir()
    (tmp_path / "group/link").symlink_to(tmp_path / "secret")
    mount = Mount(source=tmp_path / "group", target="/workspace/group", writable=True)

    code, out, _ = await boxes.run(
        sandbox, boxes.launch("cat", "link", mounts=(mount,), workdir="/workspace/group")
    )

    assert (code, out) == (1, "")


async def test_a_read_only_mount_cannot_be_written(sandbox: Bubblewrap, tmp_path: Path) -> None:
    (tmp_path / "global").mkdir()
    (tmp_path / "global/note").write_text("kept")
    (tmp_path / "global").chmod(0o777)
    (tmp_path / "global/note").chmod(0o666)
    mount = Mount(source=tmp_path / "global", target="/workspace/global", writable=False)

    code, _, err = await boxes.run(
        sandbox,
        boxes.launch("touch", "note", "new", mounts=(mount,), workdir="/workspace/global"),
    )

    assert code == 1
    assert err.count("Read-only file system") == 2
    assert [path.name for path in (tmp_path / "global").iterdir()] == ["note"]


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr", "/dev", "/workspace", "/proc/sys/kernel"])
async def test_the_system_cannot_be_written(
    sandbox: Bubblewrap, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "group").mkdir()
    mount = Mount(source=tmp_path / "group", target="/workspace/group", writable=False)

    code, _, err = await boxes.run(sandbox, boxes.launch("touch", f"{folder}/new", mounts=(mount,)))

    assert code == 1
    assert "new" in err


async def test_scratch_folders_can_be_written(sandbox: Bubblewrap) -> None:
    assert await shout(sandbox, "touch /tmp/a /dev/shm/a ~/a && echo yes") == "yes"


async def test_no_user_namespace_can_be_made(sandbox: Bubblewrap) -> None:
    code, _, err = await boxes.run(sandbox, boxes.launch("unshare", "--user", "true"))

    assert code == 1
    assert "unshare failed" in err


CALLS = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
told = {}
for number in map(int, sys.argv[1:]):
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    told[number] = ctypes.get_errno()
print(json.dumps(told))
"""


async def test_forbidden_calls_are_refused(sandbox: Bubblewrap) -> None:
    column = seccomp.MACHINES[platform.machine()].column
    names = ["mount", "umount2", "unshare", "setns", "ptrace", "bpf", "keyctl", "io_uring_setup"]
    names += ["open_tree", "fsopen", "move_mount", "perf_event_open", "userfaultfd", "chroot"]
    numbers = [str(seccomp.DENIED[name][column]) for name in names]

    told = await python(sandbox, CALLS, *numbers)

    assert told == dict.fromkeys(numbers, errno.EPERM)


async def test_a_call_whose_flags_cannot_be_read_is_unknown(sandbox: Bubblewrap) -> None:
    clone3 = "435"

    assert await python(sandbox, CALLS, clone3) == {clone3: errno.ENOSYS}


async def test_threads_and_processes_can_still_be_made(sandbox: Bubblewrap) -> None:
    script = """
import json, subprocess, threading
seen = []
thread = threading.Thread(target=lambda: seen.append("thread"))
thread.start()
thread.join()
seen.append(subprocess.run(["echo", "process"], capture_output=True, text=True).stdout.strip())
print(json.dumps(seen))
"""
    assert await python(sandbox, script) == ["thread", "process"]


async def test_the_program_inherits_nothing_but_its_pipes(sandbox: Bubblewrap) -> None:
    told = await python(sandbox, "import json, os; print(json.dumps(os.listdir('/proc/self/fd')))")

    assert told == ["0", "1", "2", "3"]  # the last one is the listing itself


async def test_the_environment_is_in_nobodys_process_list(sandbox: Bubblewrap) -> None:
    secret = secrets.token_hex(16)
    box = await sandbox.launch(
        boxes.launch("sh", "-c", "echo ready; read x", environment={"TOKEN": secret})
    )
    assert await boxes.line(box) == "ready"

    listed = b""
    for entry in Path("/proc").iterdir():
        try:
            listed += (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
    await boxes.finish(box)

    assert b"bwrap" in listed
    assert secret.encode() not in listed


async def test_the_user_inside_has_a_name(sandbox: Bubblewrap) -> None:
    assert await shout(sandbox, "id -un; hostname") == "node\nagent"


async def test_without_bubblewrap_the_probe_says_what_to_install(tmp_path: Path) -> None:
    bare = Bubblewrap(installation="bare", path=str(tmp_path))

    assert (await bare.probe()).problem == (
        "bubblewrap is not installed: apt-get install bubblewrap"
    )
    with pytest.raises(AgentRefusedError, match="apt-get install bubblewrap"):
        await bare.launch(boxes.launch("true"))


async def test_a_bubblewrap_that_fails_is_a_problem_in_its_own_words(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
    )
    broken.chmod(0o755)
    (tmp_path / "setpriv").symlink_to("/usr/bin/setpriv")

    fitness = await Bubblewrap(installation="broken", path=str(tmp_path)).probe()

    assert "user namespaces are not allowed here" in fitness.problem
    assert "No permissions to create new namespace" in fitness.problem


async def test_limits_that_cannot_be_enforced_are_told() -> None:
    fitness = await Bubblewrap(installation="free", hierarchies=()).probe()

    assert fitness.problem == ""
    assert [told.split(":")[0] for told in fitness.unenforced] == [
        "memory limit",
        "pids limit",
        "cpus limit",
    ]


async def test_a_program_that_the_box_does_not_show_is_refused(
    sandbox: Bubblewrap, tmp_path: Path
) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    with pytest.raises(AgentRefusedError, match="not visible in its sandbox: mount its folder"):
        await sandbox.launch(boxes.launch(str(program)))


async def test_a_folder_is_no_program(sandbox: Bubblewrap) -> None:
    with pytest.raises(AgentRefusedError, match="is not a file"):
        await sandbox.launch(boxes.launch("/usr/bin"))


async def test_a_link_that_leads_somewhere_inside_may_be_the_program(
    sandbox: Bubblewrap, tmp_path: Path
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/agent").symlink_to("/elsewhere/agent")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/agent").write_text("#!/bin/sh\necho I run\n")
    (tmp_path / "bin/agent").chmod(0o755)
    mounts = (
        Mount(source=tmp_path / "app", target="/app", writable=False),
        Mount(source=tmp_path / "bin", target="/elsewhere", writable=False),
    )

    heard = await boxes.run(sandbox, boxes.launch("/app/agent", mounts=mounts))

    assert heard == (0, "I run\n", "")


async def test_a_box_that_cannot_be_made_is_a_failure_and_leaves_no_open_file(
    sandbox: Bubblewrap,
) -> None:
    await boxes.run(sandbox, boxes.launch("true"))
    before = boxes.open_files()
    too_long = "x" * (1 << 18)  # more than the kernel takes for one word

    with pytest.raises(AgentFailedError, match="could not be started"):
        await sandbox.launch(boxes.launch("echo", too_long))

    await asyncio.sleep(0)  # the loop closes pipes on its next round
    assert boxes.open_files() == before


# --- folders of the operator's ------------------------------------------------------------------


def extra(source: Path, *, writable: bool = False) -> Mount:
    target = "/workspace/extra/project"
    return Mount(source=source, target=target, writable=writable, is_foreign=True)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of the operator's above two others; one is to be seen by no agent."""
    for name in ("project", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "which").write_text(name)
    return tmp_path


@pytest.mark.parametrize("swapped", ["project", "above"])
async def test_a_link_put_in_the_place_of_a_mount_is_not_followed(
    sandbox: Bubblewrap, shared: Path, swapped: str
) -> None:
    (shared / "above").mkdir()
    (shared / "project").rename(shared / "above" / "project")
    (shared / "secret").rename(shared / "hidden")
    (shared / "hidden" / "project").mkdir()
    source = shared / "above" / "project"
    link = source if swapped == "project" else shared / "above"
    link.rename(shared / "moved")
    link.symlink_to(shared / "hidden")

    with pytest.raises(AgentRefusedError, match="not what it was when it was looked at"):
        await sandbox.launch(boxes.launch("ls", "/workspace/extra", mounts=(extra(source),)))


async def test_a_mount_that_is_exchanged_while_the_box_is_made_is_the_one_that_was_judged(
    shared: Path,
) -> None:
    late = shared / "bin"
    late.mkdir()
    wrapper = late / "bwrap"
    wrapper.write_text(
        "#!/bin/sh\n"
        f"case $1 in --version|--help) ;; *) [ -L {shared}/project ] || {{\n"
        f"mv {shared}/project {shared}/moved; ln -s {shared}/secret {shared}/project; }};; esac\n"
        # The second one is called by the first, which does not show this folder.
        'for word do shift; [ "$word" = "$0" ] && word=/usr/bin/bwrap; set -- "$@" "$word"; done\n'
        'exec /usr/bin/bwrap "$@"\n'
    )
    wrapper.chmod(0o755)
    sandbox = Bubblewrap(installation=secrets.token_hex(4), path=f"{late}:{machine.PATH}")

    told = await boxes.run(
        sandbox,
        boxes.launch("cat", "/workspace/extra/project/which", mounts=(extra(shared / "project"),)),
    )

    assert (shared / "project").is_symlink()
    assert told == (0, "project", "")


async def test_a_mounted_file_can_be_read_and_no_handle_of_it_is_left_inside(
    sandbox: Bubblewrap, shared: Path
) -> None:
    mounts = (extra(shared / "project" / "which"),)
    program = boxes.launch("sh", "-c", "cat /workspace/extra/project; ls /proc/self/fd", "sh")

    code, out, err = await boxes.run(sandbox, replace(program, mounts=mounts))

    assert (code, err) == (0, "")
    assert out.split() == ["project0", "1", "2", "3"]  # the last is of the listing itself


async def test_a_bubblewrap_that_cannot_hold_a_folder_shows_none_from_elsewhere(
    shared: Path,
) -> None:
    old = shared / "bin"
    old.mkdir()
    (old / "bwrap").write_text("#!/bin/sh\necho bubblewrap 0.6.1\n")
    (old / "bwrap").chmod(0o755)
    sandbox = Bubblewrap(installation=secrets.token_hex(4), path=f"{old}:{machine.PATH}")

    with pytest.raises(AgentRefusedError, match="it has no --bind-fd"):
        await sandbox.launch(boxes.launch("true", mounts=(extra(shared / "project"),)))
