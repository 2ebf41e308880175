from __future__ import annotations

from pathlib import Path

from hallporter.doctor import preferences
from hallporter.doctor.preferences import Reading
from hallporter.domain.finding import Level
from hallporter.home import open_home
from hallporter.settings import changes, listed, load
from hallporter.wiring import read_settings


def written(home: Path, text: str) -> None:
    (home / "hallporter.toml").write_text(text)


def test_settings_in_force_are_fine() -> None:
    (found,) = preferences.judge(Reading())
    assert found.level is Level.OK


def test_an_unknown_key_is_a_warning(tmp_path: Path) -> None:
    written(tmp_path, "[host]\nprot = 1\n")
    (found,) = preferences.judge(read_settings(open_home(tmp_path)))
    assert found.level is Level.WARNING
    assert "did you mean 'port'?" in found.what


def test_every_wrong_value_is_a_problem_of_its_own(tmp_path: Path) -> None:
    written(tmp_path, '[host]\nport = "high"\nlog_level = "loud"\n')
    found = preferences.judge(read_settings(open_home(tmp_path)))
    assert [one.level for one in found] == [Level.PROBLEM, Level.PROBLEM]
    assert all(one.do for one in found)


def test_what_changed_since_the_start_needs_a_restart(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    loaded = load(tmp_path, {})
    written(tmp_path, "[host]\nport = 3200\n[channels.x]\ntoken = 'a'\n[agent]\nkind = 'demo'\n")
    reading = read_settings(home, loaded)
    found = preferences.judge(reading)
    assert [one.what.split()[0] for one in found] == ["host.port", "channels.x"]
    assert {one.do for one in found} == {"restart the host"}


def test_every_setting_says_where_it_came_from_and_when_a_change_acts(tmp_path: Path) -> None:
    written(tmp_path, "[groups.Family.agent]\nmemory = '64m'\n[channels.x]\ntoken = 'hush'\n")
    loaded = load(tmp_path, {"HALLPORTER_HOST__PORT": "3200", "CONTAINER_TIMEOUT": "60000"})
    told = {one.key: one for one in listed(loaded, {"other": {"kind": "command", "cpus": None}})}
    assert (told["host.port"].value, told["host.port"].origin) == (
        "3200",
        "HALLPORTER_HOST__PORT in the environment",
    )
    assert told["agent.timeout"].value == "60s"
    assert told["groups.family.agent.memory"].value == str(64 << 20)
    assert told["host.address"].is_default
    assert told["host.address"].acts == "at the next start"
    assert told["store.url"].value == "the value"
    assert "hush" not in str(told)
    stored = told["groups.other.agent.kind"]
    assert (stored.value, stored.origin, stored.acts) == (
        "command",
        "the database",
        "from the group's next turn",
    )
    assert told["groups.other.agent.cpus"].value == "none"


def test_the_same_settings_have_no_changes(tmp_path: Path) -> None:
    assert changes(load(tmp_path, {}), load(tmp_path, {})) == ()
