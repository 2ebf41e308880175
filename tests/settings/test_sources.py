from __future__ import annotations

import os
from pathlib import Path

import pytest

from hallporter.domain.errors import InvalidSettingsError
from hallporter.settings import Source, environment, load
from tests.settings.conftest import Load, Problems

# --- precedence ---------------------------------------------------------------------------------


def test_each_source_beats_the_ones_below_it(loaded: Load) -> None:
    toml = '[host]\nassistant_name = "File"'
    names = [
        loaded(),
        loaded(toml),
        loaded(toml, "ASSISTANT_NAME=Dot"),
        loaded(toml, "ASSISTANT_NAME=Dot\nHALLPORTER_HOST__ASSISTANT_NAME=OurDot"),
        loaded(toml, "HALLPORTER_HOST__ASSISTANT_NAME=OurDot", {"ASSISTANT_NAME": "Env"}),
        loaded(toml, "", {"ASSISTANT_NAME": "Env", "HALLPORTER_HOST__ASSISTANT_NAME": "OurEnv"}),
    ]
    assert [one.settings.host.assistant_name for one in names] == [
        "Andy",
        "File",
        "Dot",
        "OurDot",
        "Env",
        "OurEnv",
    ]
    assert [str(one.origins["host.assistant_name"]) for one in names] == [
        "the default",
        "hallporter.toml",
        "ASSISTANT_NAME in .env",
        "HALLPORTER_HOST__ASSISTANT_NAME in .env",
        "ASSISTANT_NAME in the environment",
        "HALLPORTER_HOST__ASSISTANT_NAME in the environment",
    ]


def test_an_empty_variable_counts_as_not_set(loaded: Load) -> None:
    home = loaded('[host]\nport = 1\nlog_level = "error"', "LOG_LEVEL=", {"ASSISTANT_NAME": ""})
    assert home.settings.host.assistant_name == "Andy"
    assert home.settings.host.log_level == "error"


def test_a_home_without_any_file_has_the_defaults(tmp_path: Path, etc: Path) -> None:
    home = load(tmp_path, {}, etc=etc)
    assert {origin.source for origin in home.origins.values()} == {Source.DEFAULT}
    assert home.warnings == ()


def test_the_environment_is_a_copy_of_the_processs() -> None:
    assert environment() == dict(os.environ)


def test_reading_dotenv_leaves_the_process_alone(loaded: Load) -> None:
    before = dict(os.environ)
    loaded(dotenv="ASSISTANT_NAME=Dot\nSOMETHING_ELSE=1")
    assert dict(os.environ) == before


# --- unknown names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "warning"),
    [
        ("[host]\nassistent_name = 1", "'host.assistent_name' in hallporter.toml: did you mean"),
        ("[host]\nassistent_name = 1", "did you mean 'assistant_name'?"),
        ("[hosts]\nport = 1", "'hosts' in hallporter.toml: did you mean 'host'?"),
        ("[store]\nzzz = 1", "'store.zzz' in hallporter.toml: known are url"),
        ("[groups.family]\nagents = 1", "'groups.family.agents' in hallporter.toml: did you mean"),
        ("[groups.a.agent]\nsandbx = 1", "'groups.a.agent.sandbx' in hallporter.toml: did you"),
    ],
)
def test_an_unknown_key_is_a_warning_with_the_nearest_known_one(
    loaded: Load, toml: str, warning: str
) -> None:
    [told] = loaded(toml).warnings
    assert told.startswith("unknown key ")
    assert warning in told


def test_an_unknown_variable_is_a_warning_with_the_nearest_known_one(loaded: Load) -> None:
    names = {
        "HALLPORTER_HOST__ASSISTENT_NAME": "x",
        "HALLPORTER_PORT": "1",
        "HALLPORTER_GROUPS__FAMILY__AGENT__KINDS": "demo",
        "HALLPORTER_GROUPS__FAMILY": "demo",
        "HALLPORTER_CHANNELS__WHATSAPP": "true",
    }
    warnings = loaded(environment=names).warnings
    assert [told.split("'")[1] for told in warnings] == sorted(names)
    by_name = {told.split("'")[1]: told for told in warnings}
    assert by_name["HALLPORTER_HOST__ASSISTENT_NAME"] == (
        "unknown variable 'HALLPORTER_HOST__ASSISTENT_NAME' in the environment:"
        " did you mean 'HALLPORTER_HOST__ASSISTANT_NAME'?"
    )
    assert by_name["HALLPORTER_PORT"].endswith("did you mean 'HALLPORTER_HOST__PORT'?")
    assert by_name["HALLPORTER_GROUPS__FAMILY__AGENT__KINDS"].endswith(
        "did you mean 'HALLPORTER_GROUPS__FAMILY__AGENT__KIND'?"
    )
    [told] = loaded(dotenv="HALLPORTER_AGENT__KINDS=demo").warnings
    assert "in .env: did you mean 'HALLPORTER_AGENT__KIND'?" in told


def test_variables_that_others_read_are_no_warning(loaded: Load) -> None:
    names = ("HALLPORTER_HOME", "HALLPORTER_TOKEN", "HALLPORTER_URL", "HALLPORTER_VAULT_KEY")
    assert loaded(environment=dict.fromkeys((*names, "PATH", "HALL"), "x")).warnings == ()


# --- ${NAME} ------------------------------------------------------------------------------------


def test_a_name_in_any_string_is_read_from_dotenv_or_the_environment(loaded: Load) -> None:
    home = loaded(
        """
        [host]
        assistant_name = "${NAME} of ${PLACE}"
        [agent]
        command = ["${PROGRAM}", "--keep", "$${HOME}", "$HOME", "${}"]
        [channels.whatsapp_cloud.lab]
        access_token = "${WA_TOKEN}"
        phones = [{ number = "${PLACE}" }]
        """,
        "NAME=Dot\nWA_TOKEN=abc$def",
        {"NAME": "Ann", "PLACE": "Rome", "PROGRAM": "/bin/agent"},
    ).settings
    assert home.host.assistant_name == "Ann of Rome"
    assert home.agent["command"] == ("/bin/agent", "--keep", "${HOME}", "$HOME", "${}")
    assert home.channels["whatsapp_cloud"] == {
        "lab": {"access_token": "abc$def", "phones": [{"number": "Rome"}]}
    }


def test_a_missing_name_is_an_error_that_names_key_and_variable(problems: Problems) -> None:
    [told] = problems('[channels.wa.lab]\naccess_token = "${WA_TOKEN}:${WA_TOKEN}"')
    assert told == (
        "channels.wa.lab.access_token from hallporter.toml needs the variable WA_TOKEN,"
        " which is not set: put WA_TOKEN=… into .env or the environment"
    )


def test_a_refusal_shows_the_name_and_not_what_it_stands_for(problems: Problems) -> None:
    [told] = problems('[host]\nport = "${SECRET}"', "SECRET=hunter2")
    assert told.startswith('host.port: "${SECRET}" from hallporter.toml is not allowed')


# --- what cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "place"),
    [
        ('[host]\nport = 1\nassistant_name = "Andy', "line 3, column 23: not valid TOML: "),
        ("[host]\nport 3100", "line 2, column 6: not valid TOML: "),
        ("[host]\nport = 1\nport = 2", "line 3, column 9: not valid TOML: "),
        ("x = [\n1,\n", "line 3, column 1: not valid TOML: "),
        (f"x = {'9' * 5000}", "is not valid TOML: "),
        (f"x = {'[' * 5000}", "is nested too deeply"),
    ],
)
def test_broken_toml_is_refused_with_its_place(
    problems: Problems, tmp_path: Path, toml: str, place: str
) -> None:
    [told] = problems(toml)
    assert told.startswith(str(tmp_path / "hallporter.toml"))
    assert place in told


def test_files_that_are_not_text_are_refused(tmp_path: Path, etc: Path) -> None:
    (tmp_path / "hallporter.toml").write_bytes(b'[host]\nassistant_name = "\xff"')
    (tmp_path / ".env").write_bytes(b"ASSISTANT_NAME=\xff")
    with pytest.raises(InvalidSettingsError) as caught:
        load(tmp_path, {}, etc=etc)
    assert caught.value.message.splitlines() == [
        f"{tmp_path}/.env is not UTF-8 text: save it as UTF-8",
        f"{tmp_path}/hallporter.toml, line 2, column 19: not UTF-8 text, save it as UTF-8",
    ]


def test_folders_in_the_place_of_files_are_refused(tmp_path: Path, etc: Path) -> None:
    (tmp_path / "hallporter.toml").mkdir()
    (tmp_path / ".env").mkdir()
    with pytest.raises(InvalidSettingsError) as caught:
        load(tmp_path, {}, etc=etc)
    assert [line.split(" cannot be read: ")[1] for line in caught.value.message.splitlines()] == [
        "Is a directory"
    ] * 2


def test_a_mark_before_the_first_letter_is_no_trouble(tmp_path: Path, etc: Path) -> None:
    (tmp_path / "hallporter.toml").write_bytes(b"\xef\xbb\xbf[host]\r\nport = 1\r\n")
    assert load(tmp_path, {}, etc=etc).settings.host.port == 1


def test_a_line_of_dotenv_that_makes_no_sense_is_left_out_and_said(loaded: Load) -> None:
    home = loaded(dotenv="# names\nASSISTANT_NAME='Ann\nLOG_LEVEL=debug\nALONE\n")
    assert home.settings.host.log_level == "debug"
    assert home.warnings == ("line 2 of .env was left out: write it as NAME=value",)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("host = 3", "host: 3 from hallporter.toml is not allowed: use a table, [host]"),
        ("groups = 3", "use a table, [groups]"),
        ("[groups]\nfamily = 3", "use a table, [groups.family]"),
        ("[groups.family]\nagent = 3", "use a table, [groups.family.agent]"),
        ("[channels]\nwa = 3", "use a table, [channels.wa]"),
        ('[channels]\nwa_token = "abc"', "channels.wa_token: the value from hallporter.toml is"),
        ("[groups.global.agent]", "groups.global from hallporter.toml: folder 'global' is reserv"),
        ("[groups.'a b'.agent]", "groups.a b from hallporter.toml: folder 'a b' is not allowed"),
        ("[groups.a]\n[groups.A]", "groups.A from hallporter.toml is the same folder as groups.a"),
    ],
)
def test_a_table_of_the_wrong_shape_is_refused(problems: Problems, toml: str, told: str) -> None:
    [problem] = problems(toml)
    assert told in problem


def test_everything_wrong_is_told_at_once(problems: Problems) -> None:
    told = problems(
        '[host]\nport = 70000\n[agent]\nkind = "robot"\n[channels.wa]\ntoken = "${NONE}"',
        "LOG_LEVEL=loud",
        {"MAX_CONCURRENT_CONTAINERS": "0", "HALLPORTER_GROUPS__ERRORS__AGENT__KIND": "demo"},
    )
    assert sorted(line.split(":")[0].split(" ")[0] for line in told) == [
        "agent.kind",
        "channels.wa.token",
        "groups.errors.agent.kind",
        "host.log_level",
        "host.max_concurrent_containers",
        "host.port",
    ]
    assert (
        "host.port: 70000 from hallporter.toml is not allowed: use a whole number from 0 to 65535"
    ) in told
    assert (
        'host.max_concurrent_containers: "0" from MAX_CONCURRENT_CONTAINERS in the environment'
        " is not allowed: use a whole number from 1 to 10000"
    ) in told
