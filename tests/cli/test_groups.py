from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from hallporter.cli.group_options import agent_settings, senders
from tests.cli.command import hallporter

FAMILY = ("web:family", "--name", "Family", "--folder", "family")


async def test_a_groups_people_name_and_mounts_are_set_from_the_shell(tmp_path: Path) -> None:
    made = await hallporter(
        *(tmp_path, "groups", "add", *FAMILY, "--assistant-name", "Mona", "--json"),
        *("--allow-sender", "alice", "--allow-sender", "bob"),
    )
    changed = await hallporter(
        *(tmp_path, "groups", "set", "family", "--others", "store", "--json"),
        *("--mount", "/srv/notes", "--mount", "/srv/photos:pictures:rw"),
    )
    shown = await hallporter(tmp_path, "groups", "show", "family")
    back = await hallporter(
        *(tmp_path, "groups", "set", "family", "--allow-everyone", "--no-mounts", "--json"),
        *("--assistant-name", ""),
    )
    assert made.json["trigger"] == "@Mona", made.err
    assert made.json["senders"] == {"allow": ["alice", "bob"], "others": "ignore"}
    assert changed.json["senders"] == {"allow": ["alice", "bob"], "others": "store"}
    assert changed.json["agent_settings"] == {"mounts": ["/srv/notes", "/srv/photos:pictures:rw"]}
    assert "alice, bob; others: store" in shown.out
    assert "Mona" in shown.out
    assert (back.json["senders"], back.json["assistant_name"]) == (None, None)
    assert back.json["agent_settings"] == {}


async def test_nobody_is_an_empty_list(tmp_path: Path) -> None:
    nobody = await hallporter(tmp_path, "groups", "set", "main", "--allow-nobody", "--json")
    shown = await hallporter(tmp_path, "groups", "show", "main")
    assert nobody.json["senders"] == {"allow": [], "others": "ignore"}
    assert "nobody; others: ignore" in shown.out


def test_what_does_not_go_together_is_wrong_usage() -> None:
    wrong: list[Callable[[], object]] = [
        lambda: senders(["a"], None, nobody=True),
        lambda: senders(["a"], None, everyone=True),
        lambda: senders(None, None, everyone=True, nobody=True),
        lambda: senders(None, "store", everyone=True),
        lambda: agent_settings(None, None, ["/srv"], no_mounts=True),
    ]
    for say in wrong:
        with pytest.raises(typer.BadParameter):
            say()
    assert senders(None, None) == agent_settings(None, None, None) == {}


async def test_a_mount_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path) -> None:
    done = await hallporter(tmp_path, "groups", "set", "main", "--mount", "srv")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith('hallporter: mounts: ["srv"] is not allowed: a mount\'s path begins')


async def test_what_the_file_says_of_a_groups_people_is_shown_and_cannot_be_set(
    tmp_path: Path,
) -> None:
    (tmp_path / "hallporter.toml").write_text('[groups.main]\nsenders = ["alice"]\n')
    shown = await hallporter(tmp_path, "groups", "list", "--json")
    refused = await hallporter(tmp_path, "groups", "set", "main", "--allow-everyone")
    assert shown.json[0]["senders"] == {"allow": ["alice"], "others": "ignore"}
    assert refused.code == 1
    assert refused.err == (
        "hallporter: senders of the group 'main' is fixed by hallporter.toml: change it there\n"
    )


async def test_all_chats_are_listed_registered_or_not(tmp_path: Path) -> None:
    await hallporter(tmp_path, "groups", "add", *FAMILY)
    await hallporter(tmp_path, "groups", "remove", "family")
    listed = await hallporter(tmp_path, "groups", "list", "--all", "--json")
    plain = await hallporter(tmp_path, "groups", "list", "--all")
    chats = {chat["chat"]: chat for chat in listed.json}
    assert (chats["web:main"]["folder"], chats["web:main"]["is_registered"]) == ("main", True)
    assert chats["web:family"]["is_registered"] is False
    assert "folder" not in chats["web:family"]
    assert "web:family" in plain.out
