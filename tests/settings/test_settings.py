from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.settings import HostSettings
from tests.settings.conftest import Load, Problems

MINUTE = timedelta(minutes=1)

# --- defaults -----------------------------------------------------------------------------------


@pytest.mark.requirement("queue.concurrency.default-five")
def test_the_host_has_the_documented_defaults(loaded: Load) -> None:
    assert loaded().settings.host == HostSettings(
        assistant_name="Andy",
        has_own_number=False,
        max_concurrent_containers=5,
        max_remote=32,
        timezone="UTC",
        log_level="info",
        max_output_size=10 * 1024 * 1024,
        address="127.0.0.1",
        port=3100,
        min_free_disk=500 * 1024 * 1024,
    )


@pytest.mark.requirement("idle.timer.default-30-minutes")
def test_the_agent_has_the_documented_defaults(loaded: Load) -> None:
    assert dict(loaded().settings.agent) == {
        "kind": "demo",
        "command": (),
        "image": "hallporter-agent:latest",
        "sandbox": "auto",
        "network": "gate",
        "timeout": 30 * MINUTE,
        "idle_timeout": 30 * MINUTE,
        "memory": 2 * 1024**3,
        "pids": 512,
        "cpus": None,
        "mounts": (),
    }


def test_the_store_is_a_file_in_the_home_by_default(loaded: Load, tmp_path: Path) -> None:
    store = loaded().settings.store
    assert (store.url, store.path) == ("sqlite:///hallporter.db", tmp_path / "hallporter.db")


def test_no_group_and_no_channel_is_set_by_default(loaded: Load) -> None:
    settings = loaded().settings
    assert (dict(settings.groups), dict(settings.channels)) == ({}, {})


# --- the documents' variables -------------------------------------------------------------------


def test_the_documents_variables_set_what_they_name(loaded: Load) -> None:
    settings = loaded(
        environment={
            "ASSISTANT_NAME": "Ann",
            "ASSISTANT_HAS_OWN_NUMBER": "true",
            "CONTAINER_IMAGE": "example.org/agent:2",
            "CONTAINER_RUNTIME": "podman",
            "CONTAINER_TIMEOUT": "90000",
            "IDLE_TIMEOUT": "1500",
            "CONTAINER_MAX_OUTPUT_SIZE": "4096",
            "MAX_CONCURRENT_CONTAINERS": "7",
            "TZ": "Asia/Shanghai",
            "LOG_LEVEL": "WARNING",
        }
    ).settings
    host, agent = settings.host, settings.agent
    assert (host.assistant_name, host.has_own_number) == ("Ann", True)
    assert (host.max_output_size, host.max_concurrent_containers) == (4096, 7)
    assert (host.timezone, host.log_level) == ("Asia/Shanghai", "warning")
    assert (agent["image"], agent["sandbox"]) == ("example.org/agent:2", "podman")
    assert (agent["timeout"], agent["idle_timeout"]) == (
        timedelta(seconds=90),
        timedelta(seconds=1.5),
    )


@pytest.mark.parametrize("word", ["True", "TRUE", "1", "yes", " true", "false"])
def test_only_the_exact_word_true_gives_the_assistant_its_own_number(
    loaded: Load, word: str
) -> None:
    assert not loaded(environment={"ASSISTANT_HAS_OWN_NUMBER": word}).settings.host.has_own_number


@pytest.mark.parametrize("value", ["30m", "1.5", "-1", "0", "99999999999999"])
def test_the_documents_timeout_is_whole_milliseconds(problems: Problems, value: str) -> None:
    [told] = problems(environment={"CONTAINER_TIMEOUT": value})
    assert told == (
        f'agent.timeout: "{value}" from CONTAINER_TIMEOUT in the environment is not allowed:'
        " use whole milliseconds, from 1 seconds to 365 days"
    )


# --- our variables ------------------------------------------------------------------------------


def test_every_table_can_be_set_by_variables(loaded: Load, tmp_path: Path) -> None:
    settings = loaded(
        '[channels.web]\n[channels.wa.lab]\nphone = "1"\ntoken = "old"',
        "HALLPORTER_HOST__HAS_OWN_NUMBER=true",
        {
            "HALLPORTER_HOST__MAX_OUTPUT_SIZE": "1m",
            "HALLPORTER_STORE__URL": "sqlite:////srv/porter.db",
            "HALLPORTER_AGENT__COMMAND": "python3 '/srv/my agent.py'",
            "HALLPORTER_GROUPS__MY__FOLDER__AGENT__KIND": "command",
            "HALLPORTER_CHANNELS__WA__LAB__TOKEN": "new",
            "HALLPORTER_CHANNELS__MX__TOKEN": "m",
        },
    ).settings
    assert settings.host.has_own_number
    assert settings.host.max_output_size == 1024 * 1024
    assert settings.store.path == Path("/srv/porter.db")
    assert settings.agent["command"] == ("python3", "/srv/my agent.py")
    assert dict(settings.groups) == {"my__folder": {"kind": "command"}}
    assert dict(settings.channels) == {
        "web": {},
        "wa": {"lab": {"phone": "1", "token": "new"}},
        "mx": {"token": "m"},
    }


def test_a_variable_may_open_a_table_where_the_file_has_a_value(loaded: Load) -> None:
    settings = loaded(
        "[channels.wa]\nlab = false", environment={"HALLPORTER_CHANNELS__WA__LAB__TOKEN": "t"}
    ).settings
    assert settings.channels["wa"] == {"lab": {"token": "t"}}


# --- the time zone ------------------------------------------------------------------------------


def test_the_machines_time_zone_is_the_default(loaded: Load, etc: Path) -> None:
    (etc / "timezone").write_text("Europe/Paris\n")
    assert loaded().settings.host.timezone == "Europe/Paris"
    (etc / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert loaded().settings.host.timezone == "Asia/Tokyo"
    assert loaded('[host]\ntimezone = "UTC"').settings.host.timezone == "UTC"


def test_a_machine_with_a_zone_of_its_own_making_is_in_utc(loaded: Load, etc: Path) -> None:
    (etc / "timezone").write_text("Nowhere/Land")
    (etc / "localtime").symlink_to("/srv/our-zone")
    assert loaded().settings.host.timezone == "UTC"


# --- wrong values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("host", 'assistant_name = "  "'),
        ("host", 'assistant_name = "two\\nlines"'),
        ("host", f'assistant_name = "{"x" * 65}"'),
        ("host", "assistant_name = 3"),
        ("host", 'has_own_number = "maybe"'),
        ("host", "has_own_number = 1"),
        ("host", "max_concurrent_containers = 0"),
        ("host", "max_concurrent_containers = true"),
        ("host", 'max_remote = "many"'),
        ("host", 'timezone = "Paris"'),
        ("host", 'timezone = "Europe"'),
        ("host", 'timezone = "../../etc/passwd"'),
        ("host", 'log_level = "loud"'),
        ("host", "max_output_size = -1"),
        ("host", 'max_output_size = "none"'),
        ("host", 'address = "http://here"'),
        ("host", 'address = "127.0.0.999"'),
        ("host", "port = 65536"),
        ("host", "port = -1"),
        ("host", "port = 31.5"),
        ("store", 'url = "mysql://x"'),
        ("store", 'url = "hallporter.db"'),
        ("store", 'url = "sqlite:///"'),
        ("store", 'url = "sqlite:///:memory:"'),
        ("agent", 'kind = "Demo"'),
        ("agent", "command = [1]"),
        ("agent", "command = 1"),
        ("agent", 'command = [""]'),
        ("agent", 'command = "python3 \'open"'),
        ("agent", 'command = "[1"'),
        ("agent", 'image = "--privileged"'),
        ("agent", 'sandbox = "jail"'),
        ("agent", 'network = "yes"'),
        ("agent", 'timeout = "soon"'),
        ("agent", "timeout = 0"),
        ("agent", "timeout = inf"),
        ("agent", "timeout = true"),
        ("agent", 'timeout = "999999999999d"'),
        ("agent", "idle_timeout = -1"),
        ("agent", 'memory = "2 apples"'),
        ("agent", 'memory = "5m"'),
        ("agent", 'memory = "99999999999g"'),
        ("agent", "memory = false"),
        ("agent", "pids = -1"),
        ("agent", "cpus = -0.5"),
        ("agent", "cpus = nan"),
        ("agent", 'cpus = "all"'),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_and_what_is_allowed(
    problems: Problems, table: str, line: str
) -> None:
    [told] = problems(f"[{table}]\n{line}")
    assert told.startswith(f"{table}.{line.partition(' ')[0]}: ")
    assert "from hallporter.toml is not allowed: " in told
    assert "use " in told


def test_a_databases_address_is_never_shown(problems: Problems) -> None:
    [told] = problems('[store]\nurl = "postgresql://porter:hunter2@db/porter"')
    assert told == (
        "store.url: the value from hallporter.toml is not allowed: postgresql:// is not"
        " available in this version yet; use sqlite:///FILE (below the home) or"
        " sqlite:////FOLDER/FILE"
    )


def test_a_long_value_is_cut_where_it_is_shown(problems: Problems) -> None:
    [told] = problems(f'[host]\nassistant_name = "{"x" * 5000}"')
    assert len(told) < 250
