from __future__ import annotations

from datetime import timedelta

import pytest

from hallporter.domain.brief import AgentSettings
from hallporter.domain.errors import AgentRefusedError, InvalidRequestError
from hallporter.settings import Origin, Source, check_agent
from tests.settings.conftest import Load


def test_a_group_without_values_of_its_own_has_those_of_agent(loaded: Load) -> None:
    settings = loaded('[agent]\nsandbox = "process"\nmemory = "none"').settings
    assert settings.agent_for("family", {}) == AgentSettings(
        kind="demo",
        sandbox="process",
        command=(),
        image="hallporter-agent:latest",
        network="gate",
        timeout=timedelta(minutes=30),
        idle_timeout=timedelta(minutes=30),
        memory=None,
        pids=512,
        cpus=None,
    )


def test_a_groups_own_value_beats_agent_key_by_key(loaded: Load) -> None:
    settings = loaded(
        """
        [agent]
        network = "none"
        timeout = "1h"
        idle_timeout = "1h"
        pids = 10
        [groups.family.agent]
        timeout = "2h"
        idle_timeout = "2h"
        """,
        environment={"HALLPORTER_GROUPS__FAMILY__AGENT__IDLE_TIMEOUT": "4h"},
    ).settings
    stored = {"timeout": "3h", "pids": 30, "cpus": 1.5}
    agent = settings.agent_for("family", stored)
    assert agent.network == "none"
    assert agent.pids == 30
    assert agent.cpus == 1.5
    assert agent.timeout == timedelta(hours=2)
    assert agent.idle_timeout == timedelta(hours=4)
    assert settings.agent_for("others", stored).timeout == timedelta(hours=3)


def test_what_is_stored_with_a_group_beats_even_a_variable_for_all(loaded: Load) -> None:
    settings = loaded(environment={"HALLPORTER_AGENT__NETWORK": "open"}).settings
    assert settings.agent_for("family", {"network": "none"}).network == "none"


def test_a_folders_letter_case_does_not_matter(loaded: Load) -> None:
    home = loaded('[groups.Family.agent]\nnetwork = "none"')
    assert home.settings.agent_for("faMily", {}).network == "none"
    assert home.fixed_by("FAMILY", "network") == Origin(source=Source.FILE)


def test_a_command_agent_without_a_command_is_refused_with_its_remedy(loaded: Load) -> None:
    settings = loaded().settings
    with pytest.raises(AgentRefusedError, match=r'set command = \["PROGRAM", "ARGUMENT"\]'):
        settings.agent_for("family", {"kind": "command"})
    stored = {"kind": "command", "command": ["/srv/agent"]}
    assert settings.agent_for("family", stored).command == ("/srv/agent",)


@pytest.mark.parametrize("stored", [{"timeout": "soon"}, {"colour": "red"}])
def test_stored_values_that_do_not_fit_are_refused(loaded: Load, stored: dict[str, object]) -> None:
    with pytest.raises(AgentRefusedError, match="stored with 'family' do not fit: "):
        loaded().settings.agent_for("family", stored)


def test_a_key_is_fixed_by_the_groups_own_file_or_variable_only(loaded: Load) -> None:
    name = "HALLPORTER_GROUPS__FAMILY__AGENT__PIDS"
    home = loaded(
        '[agent]\nkind = "demo"\n[groups.family.agent]\nnetwork = "none"',
        environment={name: "7", "CONTAINER_TIMEOUT": "5000"},
    )
    assert str(home.fixed_by("family", "network")) == "hallporter.toml"
    assert str(home.fixed_by("family", "pids")) == f"{name} in the environment"
    assert home.fixed_by("family", "kind") is None
    assert home.fixed_by("family", "timeout") is None
    assert home.fixed_by("others", "network") is None


def test_agent_settings_that_fit_may_be_stored_as_they_are() -> None:
    values = {"kind": "command", "command": ["a"], "timeout": "30m", "memory": "none", "pids": 0}
    assert check_agent(values) == values
    assert check_agent({}) == {}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("kind", "robot", 'kind: "robot" is not allowed: use one of claude, demo, command'),
        ("timeout", None, "timeout: null is not allowed: use a duration such as"),
        ("kinds", "demo", "there is no agent setting 'kinds': did you mean 'kind'?"),
        ("zzz", 1, "there is no agent setting 'zzz': known are kind, command, image"),
    ],
)
def test_agent_settings_that_do_not_fit_are_refused(
    field: str, value: object, message: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_agent({field: value})
    assert caught.value.message.startswith(message)
    assert caught.value.facts == {"field": field, "value": value}
