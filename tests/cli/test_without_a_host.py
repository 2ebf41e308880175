from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from hallporter import __version__
from tests.cli.command import hallporter


async def test_any_command_makes_what_an_empty_home_lacks(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    done = await hallporter(home, "groups", "list", "--json")
    (group,) = done.json
    assert done.code == 0
    assert group == {
        "chat": "web:main",
        "name": "Main",
        "folder": "main",
        "trigger": "@Andy",
        "requires_trigger": True,
        "is_main": True,
        "assistant_name": None,
        "senders": None,
        "agent": "demo",
        "agent_settings": {},
    }
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


async def test_groups_live_without_a_host(tmp_path: Path) -> None:
    family = ("web:family", "--name", "Family", "--folder", "family")
    made = await hallporter(tmp_path, "groups", "add", *family, "--no-trigger")
    changed = await hallporter(
        tmp_path, "groups", "set", "family", "--command", "python3 'my agent.py'", "--json"
    )
    listed = await hallporter(tmp_path, "groups", "list")
    (tmp_path / "groups" / "family").mkdir()
    removed = await hallporter(tmp_path, "groups", "remove", "family")
    gone = await hallporter(tmp_path, "groups", "show", "family")
    assert (made.code, changed.code, listed.code, removed.code) == (0, 0, 0, 0), made.err
    assert changed.json["requires_trigger"] is False
    assert changed.json["agent_settings"] == {"command": ["python3", "my agent.py"]}
    assert "web:family" in listed.out
    assert removed.out.endswith("Its folder groups/family is kept.\n")
    assert (tmp_path / "groups" / "family").exists()
    assert (gone.code, gone.out) == (1, "")
    assert gone.err == "hallporter: no group has the folder 'family'\n"


async def test_a_group_that_had_nothing_leaves_nothing(tmp_path: Path) -> None:
    await hallporter(tmp_path, "groups", "add", "web:a", "--name", "A", "--folder", "a")
    removed = await hallporter(tmp_path, "groups", "remove", "a")
    assert removed.out == (
        "The group 'a' is removed. It had no files, and nothing was said in its chat.\n"
    )


async def test_purging_removes_the_files_and_says_so(tmp_path: Path) -> None:
    family = ("web:family", "--name", "Family", "--folder", "family")
    await hallporter(tmp_path, "groups", "add", *family)
    for folder in ("groups", "data/ipc", "data/sessions"):
        (tmp_path / folder / "family").mkdir(parents=True)
        (tmp_path / folder / "family" / "memory.md").write_text("kept")
    refused = await hallporter(tmp_path, "groups", "remove", "family", "--purge")
    assert (refused.code, refused.out) == (1, "")
    assert "say --yes to purge 'family' (web:family)" in refused.err
    assert (tmp_path / "groups" / "family" / "memory.md").exists()
    removed = await hallporter(tmp_path, "groups", "remove", "family", "--purge", "--yes")
    assert "files are gone, and so is what was said in the chat: 3 files removed." in removed.out
    for folder in ("groups", "data/ipc", "data/sessions"):
        assert not (tmp_path / folder / "family").exists()


async def test_the_main_flag_is_not_taken_from_another_without_a_yes(tmp_path: Path) -> None:
    other = ("groups", "add", "web:other", "--name", "Other", "--folder", "other", "--main")
    refused = await hallporter(tmp_path, *other)
    agreed = await hallporter(tmp_path, *other, "--yes")
    groups = (await hallporter(tmp_path, "groups", "list", "--json")).json
    assert refused.code == 1
    assert "--yes" in refused.err
    assert agreed.code == 0
    assert {group["folder"]: group["is_main"] for group in groups} == {"main": False, "other": True}


async def test_a_token_is_printed_once(tmp_path: Path) -> None:
    made = await hallporter(
        tmp_path, "tokens", "create", "--role", "consumer_app", "--subject", "alice", "--json"
    )
    listed = await hallporter(tmp_path, "tokens", "list", "--json")
    revoked = await hallporter(tmp_path, "tokens", "revoke", made.json["id"])
    table = await hallporter(tmp_path, "tokens", "list")
    assert list(made.json) == ["id", "token", "role", "subject", "expires"]
    assert made.json["token"] not in listed.out
    assert [token["id"] for token in listed.json] == [made.json["id"]]
    assert revoked.code == 0
    assert "alice" in table.out


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--role", "king", "'king' is no role: use one of consumer_app"),
        ("--expires", "soon", "write for example '12h'"),
        ("--expires", "0d", "write for example '12h'"),
    ],
)
async def test_a_bad_option_of_a_token_is_the_caller_s_mistake(
    tmp_path: Path, option: str, value: str, why: str
) -> None:
    good = ("--role", "consumer_app", "--subject", "alice")
    done = await hallporter(tmp_path, "tokens", "create", *good, option, value)
    assert (done.code, done.out) == (2, "")
    assert why in done.err


async def test_a_secret_can_be_piped_on(tmp_path: Path) -> None:
    made = await hallporter(
        tmp_path, "tokens", "create", "--role", "studio_operator", "--subject", "bob"
    )
    assert made.out.startswith("hp_")
    assert made.out.count("\n") == 1
    assert "shown this once" in made.err


async def test_status_says_that_no_host_is_running(tmp_path: Path) -> None:
    plain = await hallporter(tmp_path, "status")
    data = (await hallporter(tmp_path, "status", "--json")).json
    assert plain.code == 0
    assert "No host is running" in plain.out
    assert data["is_ready"] is False
    assert data["groups"] == 1


async def test_talking_needs_a_host(tmp_path: Path) -> None:
    done = await hallporter(tmp_path, "chat", "--once", "hello")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"hallporter: no host is running for {tmp_path}: start it with `hallporter up`\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["groups", "add", "web:x"],
        ["groups", "set", "main"],
        ["groups", "set", "main", "--command", "'half"],
        ["chat", "--timeout", "soon"],
        ["up", "--port", "70000"],
    ],
)
async def test_wrong_usage_is_exit_two(tmp_path: Path, arguments: list[str]) -> None:
    assert (await hallporter(tmp_path, *arguments)).code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["explain", "nothing"], "no message 'nothing'"),
        (["explain", "no/thing"], "no message 'no/thing'"),
        (["tokens", "revoke", "nothing"], "no token 'nothing'"),
        (["groups", "add", "web:x", "--name", "X", "--folder", "../x"], "not allowed"),
        (["groups", "add", "nowhere:1", "--name", "X", "--folder", "x"], "no configured channel"),
        (["groups", "set", "main", "--agent", "nonsense"], "nonsense"),
    ],
)
async def test_a_refusal_is_one_sentence(tmp_path: Path, arguments: list[str], told: str) -> None:
    done = await hallporter(tmp_path, *arguments)
    assert (done.code, done.out) == (1, "")
    assert told in done.err
    assert done.err.count("\n") == 1


async def test_a_damaged_database_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "hallporter.db").write_bytes(b"not a database" * 1000)
    done = await hallporter(tmp_path, "groups", "list")
    assert done.code == 1
    assert "hallporter.db cannot be used" in done.err
    assert done.err.count("\n") == 1


async def test_two_commands_at_once_wait_for_one_another(tmp_path: Path) -> None:
    done = await asyncio.gather(
        *(
            hallporter(
                tmp_path, "groups", "add", f"web:g{n}", "--name", f"G{n}", "--folder", f"g{n}"
            )
            for n in range(3)
        )
    )
    assert [one.code for one in done] == [0, 0, 0], [one.err for one in done]
    assert len((await hallporter(tmp_path, "groups", "list", "--json")).json) == 4


async def test_the_version_is_told(tmp_path: Path) -> None:
    assert (await hallporter(tmp_path, "--version")).out == f"{__version__}\n"


async def test_words_that_are_no_text_are_refused_in_one_sentence(tmp_path: Path) -> None:
    done = await hallporter(tmp_path, "explain", "\udcff")
    assert (done.code, done.out) == (2, "")
    assert done.err == "hallporter: the arguments are not UTF-8: check the terminal's encoding\n"


async def test_an_empty_home_is_refused(tmp_path: Path) -> None:
    done = await hallporter(tmp_path, "--home", "", "status")
    assert done.code == 2
    assert "name a folder" in done.err


async def test_an_operators_token_is_not_for_one_chat(tmp_path: Path) -> None:
    whose = ("--role", "studio_operator", "--subject", "op", "--chat", "web:main")
    done = await hallporter(tmp_path, "tokens", "create", *whose)
    assert done.code == 1
    assert "opens every chat" in done.err
