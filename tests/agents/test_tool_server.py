"""The program that starts the host's tools, wherever it is shown."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hallporter.agents.tool_server import install, installed_libraries
from hallporter.sandboxes.machine import interpreter
from tests.agents.room import SOURCE


def start(folder: Path, libraries: tuple[Path, ...]) -> subprocess.CompletedProcess[str]:
    """As without a box: a folder of links, and a client that passes no variables on."""
    server = install(folder / "bin", python=interpreter(), libraries=libraries)
    for mount in server.mounts():
        link = folder / "view" / mount.target.removeprefix("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(mount.source)
    (folder / "view" / "app" / "src").symlink_to(SOURCE)
    return subprocess.run(
        [folder / "view" / "app" / "bin" / "hallporter-mcp"],
        env={"PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )


def test_it_serves_until_its_client_is_gone(tmp_path: Path) -> None:
    run = start(tmp_path, installed_libraries())
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_without_the_packages_it_says_what_to_install(tmp_path: Path) -> None:
    run = start(tmp_path, ())
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "the MCP server needs the package mcp: pip install 'hallporter[agents]'\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only a root host changes its user")
def test_packages_that_root_alone_can_read_are_not_shown(tmp_path: Path) -> None:
    library = tmp_path / "site's packages"
    library.mkdir(mode=0o700)
    run = start(tmp_path, (library,))
    assert not (tmp_path / "view" / "app" / "packages").exists()
    assert run.returncode == 1
    assert run.stderr == (
        f"the MCP server's packages can be read by root alone: chmod -R o+rX {library}\n"
    )


def test_others_can_start_it_under_any_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        server = install(tmp_path / "bin", python=interpreter(), libraries=())
    finally:
        os.umask(old)
    assert server.folder.stat().st_mode & 0o777 == 0o755
    assert (server.folder / "hallporter-mcp").stat().st_mode & 0o777 == 0o755
