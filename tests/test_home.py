from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hallporter.domain.errors import ConflictError, InvalidSettingsError
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
OWNED = ("groups", "data/ipc", "data/sessions", "data/media")  # a folder for each group


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the folders --------------------------------------------------------------------------------


def test_an_empty_home_gets_everything_it_lacks(tmp_path: Path) -> None:
    home = open_home(tmp_path / "far" / "home")
    for private in (
        home.path,
        home.run_dir,
        home.path / "store",
        home.log_file.parent,
        home.media_dir,
    ):
        assert mode(private) == 0o700
    for folder in ("groups/global", "data/ipc/errors", "data/claims", "data/sessions"):
        assert (home.path / folder).is_dir()
    assert home.warnings == ()


def test_opening_a_home_again_changes_nothing_in_it(home: Home) -> None:
    (home.global_dir / "CLAUDE.md").write_text("shared")
    assert open_home(home.path) == home
    assert (home.global_dir / "CLAUDE.md").read_text() == "shared"


def test_the_folders_keep_the_documents_names(home: Home) -> None:
    assert home.toml == home.path / "hallporter.toml"
    assert home.dotenv == home.path / ".env"
    assert home.database == home.path / "hallporter.db"
    assert home.groups_dir == home.path / "groups"
    assert home.claims_dir == home.path / "data/claims"
    assert home.media_dir == home.path / "data/media"
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


@pytest.fixture
def common_ground() -> Iterator[Path]:
    """A folder that every user can reach, unlike the tests' own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def opened_by_an_ordinary_user(path: Path) -> str:
    """Root may write everywhere, so it becomes someone else, once the modules are loaded."""
    program = """
        import os, sys
        from pathlib import Path
        from hallporter.domain.errors import InvalidSettingsError
        from hallporter.home import open_home
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(1000)
            os.setuid(1000)
        try:
            print(*open_home(Path(sys.argv[1])).warnings)
        except InvalidSettingsError as error:
            print(error)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    return ran.stdout.strip()


def test_a_home_that_is_not_writable_is_refused(common_ground: Path) -> None:
    home = common_ground / "home"
    home.mkdir()
    home.chmod(0o555)
    told = opened_by_an_ordinary_user(home)
    assert told.startswith(f"the home {home} cannot be used: {home}: no permission to write;")
    assert "--home or HALLPORTER_HOME" in told


def test_a_home_that_cannot_be_made_is_refused(common_ground: Path) -> None:
    common_ground.chmod(0o555)
    told = opened_by_an_ordinary_user(common_ground / "home")
    common_ground.chmod(0o755)
    assert told.startswith(f"the home {common_ground}/home cannot be used:")
    assert "Permission denied" in told


def test_a_dotenv_of_someone_else_is_said_and_left(common_ground: Path) -> None:
    home = open_home(common_ground / "home")
    home.dotenv.symlink_to("/etc/passwd")
    if os.geteuid() == 0:
        for path in (home.path, *home.path.rglob("*")):
            os.chown(path, 1000, 1000, follow_symlinks=False)
    told = opened_by_an_ordinary_user(home.path)
    assert told == (
        f"others may read {home.dotenv}, and it is not ours to close: chmod 600 {home.dotenv}"
    )


# --- who holds it -------------------------------------------------------------------------------


def test_nobody_holds_a_fresh_home(home: Home) -> None:
    assert read_holder(home) is None


def test_a_holder_is_seen_until_it_lets_go(home: Home) -> None:
    with hold(home, url=URL, started=STARTED):
        assert read_holder(home) == Holder(
            pid=os.getpid(), url=URL, started="2025-06-01T12:00:00+00:00"
        )
    assert read_holder(home) is None


def test_a_second_host_is_told_who_holds_the_home(home: Home) -> None:
    second = hold(home, url="", started=STARTED)
    with hold(home, url=URL, started=STARTED):
        with pytest.raises(ConflictError) as caught, second:
            pass
        assert caught.value.message == (
            f"the home {home.path} is held by process {os.getpid()} at {URL}: stop that one"
            " first, or name another home with --home or HALLPORTER_HOME"
        )
        assert caught.value.facts == {"pid": os.getpid(), "url": URL}
        # Being turned away must not have loosened the first one's hold.
        assert read_holder(home) is not None


def test_a_home_is_free_again_after_a_second_host_was_turned_away(home: Home) -> None:
    with (
        hold(home, url=URL, started=STARTED),
        pytest.raises(ConflictError),
        hold(home, url=URL, started=STARTED),
    ):
        pass
    with hold(home, url=URL, started=STARTED):
        pass


def test_a_url_that_is_known_late_is_announced(home: Home) -> None:
    with hold(home, url="", started=STARTED) as held:
        assert url_of(home) == ""
        held.announce("http://127.0.0.1:40123")
        assert url_of(home) == "http://127.0.0.1:40123"
        held.announce("http://[::1]:1")
        assert url_of(home) == "http://[::1]:1"


def test_a_holder_without_a_url_is_named_by_its_process(home: Home) -> None:
    with (
        hold(home, url="", started=STARTED),
        pytest.raises(ConflictError, match=f"process {os.getpid()}: stop"),
        hold(home, url=URL, started=STARTED),
    ):
        pass


def test_a_killed_host_holds_nothing(home: Home) -> None:
    program = """
        import sys
        from datetime import UTC, datetime
        from pathlib import Path
        from hallporter.home import hold, open_home
        with hold(open_home(Path(sys.argv[1])), url="http://h", started=datetime.now(UTC)):
            print("held", flush=True)
            sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(home.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "held\n"
        holder = read_holder(home)
        assert holder is not None
        assert (holder.pid, holder.url) == (host.pid, "http://h")
        host.send_signal(signal.SIGKILL)
    assert read_holder(home) is None
    with hold(home, url=URL, started=STARTED):
        assert url_of(home) == URL


def test_those_who_look_never_turn_a_host_away(home: Home) -> None:
    with hold(home, url=URL, started=STARTED):
        pass

    def look(_: int) -> None:
        for _ in range(200):
            read_holder(home)

    with ThreadPoolExecutor(2) as threads:
        looking = threads.map(look, range(2))
        for _ in range(200):
            with hold(home, url=URL, started=STARTED):
                pass
        assert list(looking) == [None, None]


def url_of(home: Home) -> str:
    holder = read_holder(home)
    assert holder is not None
    return holder.url


# --- what is made once --------------------------------------------------------------------------


def test_the_admin_token_is_made_once_and_only_for_its_owner(home: Home) -> None:
    token = admin_token(home)
    assert re.fullmatch(r"hp_[A-Za-z0-9_-]{43}", token)
    assert admin_token(open_home(home.path)) == token
    assert mode(home.run_dir / "admin-token") == 0o600


def test_the_installations_name_is_made_once(home: Home, tmp_path: Path) -> None:
    name = installation(home)
    assert re.fullmatch(r"[0-9a-f]{8}", name)
    assert installation(home) == name
    assert installation(open_home(tmp_path / "another")) != name


def test_all_who_ask_at_once_get_the_same_token(home: Home) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(admin_token, [home] * 8))) == 1


@pytest.mark.parametrize("words", ["", "hp_short", "\0" * 46])
def test_a_damaged_token_is_refused_with_its_remedy(home: Home, words: str) -> None:
    file = home.run_dir / "admin-token"
    file.write_text(words)
    with pytest.raises(InvalidSettingsError, match=f"{file} is damaged: delete it"):
        admin_token(home)
    assert file.read_text() == words
