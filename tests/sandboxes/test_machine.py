from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hallporter.sandboxes.machine import interpreter, survey


def test_links_to_usr_stay_links(tmp_path: Path) -> None:
    for name in ("bin", "lib", "lib64"):
        (tmp_path / name).symlink_to(f"usr/{name}")

    seen = survey(tmp_path, prefix="/usr")

    assert seen.system == ("/usr",)
    assert seen.links == (("/bin", "usr/bin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64"))


def test_folders_beside_usr_are_shown_themselves(tmp_path: Path) -> None:
    for name in ("bin", "sbin", "lib"):
        (tmp_path / name).mkdir()

    seen = survey(tmp_path, prefix="/usr")

    assert seen.system == ("/usr", "/bin", "/sbin", "/lib")
    assert seen.links == ()


def test_of_etc_only_what_programs_need_is_shown(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for name in ("ssl", "shadow", "passwd", "localtime"):
        (tmp_path / "etc" / name).touch()

    assert survey(tmp_path, prefix="/usr").etc == ("/etc/localtime", "/etc/ssl")


@pytest.mark.parametrize(
    ("prefix", "extra"),
    [
        ("/usr", ()),
        ("/usr/local", ()),
        ("/home/me/python", ("/home/me/python",)),
        ("/", ()),
    ],
)
def test_a_python_outside_usr_is_shown_at_its_own_place(
    tmp_path: Path, prefix: str, extra: tuple[str, ...]
) -> None:
    assert survey(tmp_path, prefix=prefix).extra == extra


def test_a_box_shows_its_system_and_no_home(tmp_path: Path) -> None:
    (tmp_path / "bin").symlink_to("usr/bin")
    seen = survey(tmp_path, prefix="/opt/python")

    assert all(seen.shows(path) for path in ("/usr/bin/env", "/bin/sh", "/opt/python/bin/python3"))
    assert not any(seen.shows(path) for path in ("/home/me/agent", "/opt/other", "/usrlocal/x"))


def test_the_interpreter_is_a_real_program_that_a_box_shows() -> None:
    assert not Path(interpreter()).is_symlink()
    assert os.access(interpreter(), os.X_OK)
    assert survey().shows(interpreter())
    assert Path(interpreter()).is_relative_to(os.path.realpath(sys.base_prefix))
