from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hallporter.domain.errors import ConflictError, InvalidSettingsError
from hallporter.domain.ids import Folder
from hallporter.home import (
    Holder,
    Home,
    admin_token,
    default_home,
    hold,
    installation,
    open_home,
    read_holder,
)

STARTED = datetime(2025, 6, 1, 12, tzinfo=UTC)
URL = "http://127.0.0.1:3100"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the folders --------------------------------------------------------------------------------


def test_an_empty_home_gets_everything_it_lacks(tmp_path: Path) -> None:
    home = open_home(tmp_path / "far" / "home")
    for private in (home.path, home.run_dir, home.path / "store", home.log_file.parent):
        assert mode(private) == 0o700
    for folder in ("groups/global", "data/ipc/errors", "data/claims", "data/sessions"):
        assert (home.path / folder).is_dir()
    assert home.warnings == ()


def test_opening_a_home_again_changes_nothing_in_it(home: Home) -> None:
    (home.global_dir / "CLAUDE.md").write_text("shared")
    assert open_home(home.path) == home
    assert (home.global_dir / "CLAUDE.md").read_text() == "shared"


def test_the_folders_keep_the_documents_names(home: Home) -> None:
    family = Folder("family")
    assert home.toml == home.path / "hallporter.toml"
    assert home.dotenv == home.path / ".env"
    assert home.database == home.path / "hallporter.db"
    assert home.group_dir(family) == home.path / "groups/family"
    assert home.ipc_dir(family) == home.path / "data/ipc/family"
    assert home.session_dir(family) == home.path / "data/sessions/family"
    assert home.claims_dir == home.path / "data/claims"
    assert home.log_file == home.path / "logs/hallporter.log"


def test_run_is_closed_to_others_again(home: Home) -> None:
    home.run_dir.chmod(0o755)
    open_home(home.path)
    assert mode(home.run_dir) == 0o700


def test_a_home_that_others_may_enter_is_said_and_left(home: Home) -> None:
    home.path.chmod(0o755)
    assert open_home(home.path).warnings == (
        f"others may look into the home {home.path} (mode 0755): chmod 700 {home.path}",
    )
    assert mode(home.path) == 0o755


def test_a_dotenv_that_others_can_read_is_closed_and_said(home: Home) -> None:
    home.dotenv.write_text("WA_TOKEN=abc")
    home.dotenv.chmod(0o644)
    assert open_home(home.path).warnings == (
        f"others could read {home.dotenv}: it is closed to them now (mode 0600)",
    )
    assert mode(home.dotenv) == 0o600
    assert open_home(home.path).warnings == ()


def test_the_home_is_named_by_the_environment_or_lies_with_the_user() -> None:
    assert default_home({"HALLPORTER_HOME": "/srv/porter", "HOME": "/u"}) == Path("/srv/porter")
    assert default_home({"HALLPORTER_HOME": "", "HOME": "/u"}) == Path("/u/.hallporter")
    assert default_home({}) == Path.home() / ".hallporter"


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("mine")
    with pytest.raises(InvalidSettingsError, match=f"{file} is not a folder; name another home"):
        open_home(file)
    assert file.read_text() == "mine"


def test_a_home_below_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidSettingsError, match=f"cannot be made: {file} is not a folder"):
        open_home(file / "some" / "home")


def test_a_home_where_a_folder_should_be_a_file_is_refused(home: Home) -> None:
    home.claims_dir.rmdir()
    home.claims_dir.touch()
    with pytest.raises(InvalidSettingsError, match=f"{home.claims_dir} is not a folder"):
        open_home(home.path)


OPEN = """
    import sys
    from pathlib import Path
    from hallporter.domain.errors import InvalidSettingsError
    from hallporter.home import open_home
    try:
        print(*open_home(Path(sys.argv[1])).warnings)
    except InvalidSettingsError as error:
        print(error)
"""


def as_someone_else(program: str, *arguments: Path) -> str:
    """Root may write everywhere: then the program runs as an ordinary user, else as ourselves."""
    drop = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"]
    # The interpreter and the packages are loaded by then, wherever they lie.
    give_up = "import os; os.setgroups([]); os.setgid(1000); os.setuid(1000)\n"
    del drop
    is_root = os.geteuid() == 0
    code = textwrap.dedent(program)
    imports = "import hallporter.home\n"
    return subprocess.run(
        [sys.executable, "-c", imports + (give_up if is_root else "") + code, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    ).stdout.strip()
