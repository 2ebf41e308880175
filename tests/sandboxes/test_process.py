"""What the plain process does beside the contract, and what it admits."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hallporter.domain.brief import Mount
from hallporter.domain.errors import AgentRefusedError
from hallporter.sandboxes.process import Process
from tests.sandboxes import boxes


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Process]:
    made = Process(installation=secrets.token_hex(4), run_dir=tmp_path / "run")
    yield made
    await made.sweep()


def mount(folder: Path, target: str) -> Mount:
    folder.mkdir()
    return Mount(source=folder, target=target, writable=True)


async def test_it_says_that_it_protects_nothing(sandbox: Process) -> None:
    (warning,) = (await sandbox.probe()).warnings

    assert "protects nothing" in warning


async def test_the_folders_are_found_below_the_workspace(sandbox: Process, tmp_path: Path) -> None:
    mounts = (
        mount(tmp_path / "g", "/workspace/group"),
        mount(tmp_path / "i", "/workspace/ipc"),
        mount(tmp_path / "c", "/home/node/.claude"),
    )
    script = 'cd "$HALLPORTER_WORKSPACE" && touch group/g ipc/i home/node/.claude/c'

    code, _, err = await boxes.run(sandbox, boxes.launch("sh", "-c", script, mounts=mounts))

    assert (code, err) == (0, "")
    assert [(tmp_path / name).exists() for name in ("g/g", "i/i", "c/c")] == [True] * 3


async def test_paths_of_a_box_in_words_and_variables_lead_to_the_folders(
    sandbox: Process, tmp_path: Path
) -> None:
    app = mount(tmp_path / "app", "/app/src")
    (app.source / "text").write_text("found\n")

    code, out, _ = await boxes.run(
        sandbox,
        boxes.launch(
            *("sh", "-c", 'cat "$1"; ls "${WHERE#/usr:}"; echo "$URL"', "sh", "/app/src/text"),
            mounts=(app,),
            environment={"WHERE": "/usr:/app/src", "URL": "http://127.0.0.1/v1/"},
        ),
    )

    assert (code, out) == (0, "found\ntext\nhttp://127.0.0.1/v1/\n")


async def test_what_the_agent_had_stays_and_its_links_go(sandbox: Process, tmp_path: Path) -> None:
    group = mount(tmp_path / "g", "/workspace/group")

    await boxes.run(
        sandbox, boxes.launch("touch", "kept", mounts=(group,), workdir="/workspace/group")
    )

    assert (tmp_path / "g/kept").exists()
    assert boxes.names(tmp_path / "run") == []


async def test_a_sweep_clears_the_links_of_a_killed_host(sandbox: Process, tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g/kept").touch()
    (tmp_path / "run/agent-1").mkdir(parents=True)
    (tmp_path / "run/agent-1/group").symlink_to(tmp_path / "g")

    await sandbox.sweep()

    assert boxes.names(tmp_path / "run") == []
    assert (tmp_path / "g/kept").exists()


async def test_a_mount_inside_another_is_refused(sandbox: Process, tmp_path: Path) -> None:
    mounts = (
        mount(tmp_path / "outer", "/workspace/group"),
        mount(tmp_path / "inner", "/workspace/group/inner"),
    )

    with pytest.raises(AgentRefusedError, match="cannot be shown inside /workspace/group"):
        await sandbox.launch(boxes.launch("true", mounts=mounts))

    assert boxes.names(tmp_path / "outer") == []
    assert not (tmp_path / "run").exists()
