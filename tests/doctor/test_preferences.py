from __future__ import annotations

from pathlib import Path

import pytest

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
    assert told["agent.timeout"].value == "1m"  # an older name writes milliseconds
    assert told["groups.family.agent.memory"].value == "64m"
    assert told["host.address"].is_default
    assert told["host.address"].acts == "at the next start"
    assert told["store.url"].value == "sqlite:///hallporter.db"
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


def test_values_are_shown_as_they_were_written(tmp_path: Path) -> None:
    written(
        tmp_path,
        "[store]\nurl = 'sqlite:///talk.db'\n[logs]\nmax_size = '2048k'\n[host]\nport = 3200\n"
        "assistant_name = '${NAME}'\n[agent]\ntimeout = '90s'\ncommand = ['cat', '-']\n",
    )
    loaded = load(tmp_path, {"NAME": "Bea", "HALLPORTER_AGENT__IDLE_TIMEOUT": "120"})
    told = {one.key: one.value for one in listed(loaded)}
    assert told["store.url"] == "sqlite:///talk.db"
    assert told["logs.max_size"] == "2048k"
    assert told["host.port"] == "3200"
    assert told["host.assistant_name"] == "${NAME}"
    assert told["agent.timeout"] == "90s"
    assert told["agent.idle_timeout"] == "120"
    assert told["agent.command"] == '["cat", "-"]'


def test_defaults_are_shown_as_one_would_write_them(tmp_path: Path) -> None:
    told = {one.key: one.value for one in listed(load(tmp_path, {}))}
    assert told["host.max_output_size"] == "10m"
    assert told["host.min_free_disk"] == "500m"
    assert told["host.has_own_number"] == "false"
    assert told["agent.timeout"] == "30m"
    assert told["agent.memory"] == "2g"
    assert told["agent.cpus"] == "none"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[host]\nhas_own_number = true", "host.has_own_number"),
        ("[host]\nmax_remote = 3", "host.max_remote"),
        ("[agent]\nimage = 'mine'", "agent.image"),
        ("[groups.family.agent]\nimage = 'mine'", "groups.family.agent.image"),
    ],
)
def test_a_setting_without_effect_is_a_warning(tmp_path: Path, text: str, key: str) -> None:
    written(tmp_path, text)
    (found,) = preferences.judge(read_settings(open_home(tmp_path)))
    assert found.level is Level.WARNING
    assert found.what.startswith(f"{key} from hallporter.toml has no effect: ")


def test_settings_of_a_folder_that_no_group_has_are_a_warning(tmp_path: Path) -> None:
    written(tmp_path, "[groups.Family.agent]\nkind = 'demo'\n[groups.nosuch.agent]\npids = 9\n")
    loaded = load(tmp_path, {"HALLPORTER_GROUPS__OTHER__AGENT__PIDS": "9"})
    found = preferences.judge_folders(loaded.named_folders(), ["main", "FAMILY"])
    assert {one.level for one in found} == {Level.WARNING}
    assert [one.what.partition(" has no effect")[0] for one in found] == [
        "groups.nosuch.agent from hallporter.toml",
        "groups.other.agent from HALLPORTER_GROUPS__OTHER__AGENT__PIDS in the environment",
    ]
    assert "--folder nosuch" in found[0].do


@pytest.mark.parametrize(
    ("text", "key", "stored", "where"),
    [
        ("", "command", {}, "with `hallporter groups set family --command '…'`"),
        ("", "kind", {"kind": "adk"}, "with `hallporter groups set family --agent KIND`"),
        ("", "pids", {"pids": 3}, "with PATCH /api/groups/family"),
        (
            "[agent]\nkind = 'adk'",
            "kind",
            {},
            "there: kind in [agent] of hallporter.toml; it acts at the next start",
        ),
        (
            "[agent]\nkind = 'demo'",
            "kind",
            {"kind": "adk"},
            "with `hallporter groups set family --agent KIND`",
        ),
        ("", "mounts", {"mounts": ["/srv"]}, "with `hallporter groups set family --mount '…'`"),
        (
            "[groups.family.agent]\nkind = 'adk'",
            "kind",
            {"kind": "demo"},
            "there: kind in [groups.family.agent] of hallporter.toml; it acts at the next start",
        ),
    ],
)
def test_the_source_that_decides_is_the_one_to_change(
    tmp_path: Path, text: str, key: str, stored: dict[str, object], where: str
) -> None:
    written(tmp_path, text)
    assert load(tmp_path, {}).where_to_change("family", key, stored) == where


def test_a_variable_that_decides_is_the_one_to_change(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"CONTAINER_RUNTIME": "docker"})
    told = loaded.where_to_change("family", "sandbox", {})
    assert told.startswith("there: CONTAINER_RUNTIME in the environment")
