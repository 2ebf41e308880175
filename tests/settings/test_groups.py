from __future__ import annotations

import pytest

from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.extra_mount import ExtraMount
from hallporter.domain.group import Everyone, Others, SenderChange, SenderRule
from hallporter.settings import check_agent, listed
from tests.settings.conftest import Load, Problems

ADA = frozenset({"ada"})
STORED = SenderRule(allow=frozenset({"bob"}), others=Others.STORE)


def test_without_a_word_in_the_file_the_stored_rule_holds(loaded: Load) -> None:
    settings = loaded('[groups.family.agent]\nkind = "demo"').settings
    assert settings.senders_for("family", STORED) == STORED
    assert settings.senders_for("others", None) is None


def test_the_files_list_beats_the_stored_one_key_by_key(loaded: Load) -> None:
    settings = loaded('[groups.Family]\nsenders = ["ada"]').settings
    assert settings.senders_for("family", None) == SenderRule(allow=ADA)
    assert settings.senders_for("FAMILY", STORED) == SenderRule(allow=ADA, others=Others.STORE)

    settings = loaded('[groups.family]\nsenders_others = "ignore"').settings
    assert settings.senders_for("family", STORED) == SenderRule(allow=STORED.allow)
    assert settings.senders_for("family", None) is None


def test_an_empty_list_in_the_file_means_nobody(loaded: Load) -> None:
    settings = loaded("[groups.family]\nsenders = []").settings
    assert settings.senders_for("family", STORED) == SenderRule(
        allow=frozenset(), others=Others.STORE
    )


@pytest.mark.parametrize("value", ["ada 'bob b'", '["ada", "bob b"]'])
def test_a_variable_can_hold_the_list(loaded: Load, value: str) -> None:
    name = "HALLPORTER_GROUPS__MY__FAMILY__SENDERS"
    home = loaded(environment={name: value})
    assert home.settings.senders_for("my__family", None) == SenderRule(
        allow=frozenset({"ada", "bob b"})
    )
    with pytest.raises(InvalidRequestError, match=f"is fixed by {name} in the environment"):
        home.refuse_fixed_senders("my__family", Everyone())


def test_what_the_file_fixes_cannot_be_stored_and_the_rest_can(loaded: Load) -> None:
    home = loaded('[groups.family]\nsenders = ["ada"]')
    for change in (Everyone(), SenderChange(allow=ADA)):
        with pytest.raises(InvalidRequestError) as caught:
            home.refuse_fixed_senders("Family", change)
        assert caught.value.message == (
            "senders of the group 'Family' is fixed by hallporter.toml: change it there"
        )
    home.refuse_fixed_senders("family", SenderChange(others=Others.STORE))
    home.refuse_fixed_senders("others", Everyone())

    home = loaded('[groups.family]\nsenders_others = "store"')
    with pytest.raises(InvalidRequestError, match="senders_others of the group 'family' is fixed"):
        home.refuse_fixed_senders("family", SenderChange(allow=ADA, others=Others.IGNORE))


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("senders = 7", "groups.family.senders: 7 from hallporter.toml is not allowed: use a list"),
        ('senders = [""]', "a sender's id is one line of 1 to 300 characters; use a list"),
        ("senders = [7]", "is not allowed: use a list of senders' ids"),
        ('senders_others = "drop"', "is not allowed: use one of ignore, store"),
    ],
)
def test_a_wrong_list_stops_the_start(problems: Problems, toml: str, told: str) -> None:
    (problem,) = problems(f"[groups.family]\n{toml}")
    assert told in problem


def test_an_unknown_key_of_a_group_is_a_warning(loaded: Load) -> None:
    (warning,) = loaded('[groups.family]\nsender = ["ada"]').warnings
    assert warning.startswith("unknown key 'groups.family.sender' in hallporter.toml: did you mean")


def test_the_list_of_settings_has_the_groups_own(loaded: Load) -> None:
    toml = '[groups.family]\nsenders = ["bob", "ada"]\n[groups.family.agent]\nmounts = ["/srv/n"]'
    values = {one.key: one.value for one in listed(loaded(toml))}
    assert values["groups.family.senders"] == '["bob", "ada"]'
    assert values["groups.family.agent.mounts"] == '["/srv/n"]'


# --- mounts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "toml",
    [
        'mounts = ["/srv/notes", "~/photos:pictures:rw"]',
        'mounts = [{path = "/srv/notes"}, {path = "~/photos", name = "pictures", writable = true}]',
        """mounts = '["/srv/notes", "~/photos:pictures:rw"]'""",
        'mounts = "/srv/notes ~/photos:pictures:rw"',
    ],
)
def test_mounts_are_written_as_texts_or_tables(loaded: Load, toml: str) -> None:
    settings = loaded(f"[groups.family.agent]\n{toml}").settings
    assert settings.agent_for("family", {}).mounts == (
        ExtraMount(path="/srv/notes", name="notes"),
        ExtraMount(path="~/photos", name="pictures", writable=True),
    )
    assert settings.agent_for("others", {}).mounts == ()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (["srv"], "a mount's path begins with '/' or '~/'"),
        (["/"], "a mount's name has letters, digits"),
        (["/srv/a b"], "a mount's name has letters, digits"),
        (["/srv/a:.."], "a mount's name has letters, digits"),
        (["/srv/a:x/y"], "a mount's name has letters, digits"),
        (["/srv/a:b:c:rw"], "has too many colons"),
        (["/srv/a", "/home/a"], "two mounts have the name 'a'"),
        ([{"path": "/srv/a", "rw": True}], "there is no 'rw' in a mount"),
        ([{"name": "a"}], "a mount needs its path"),
        ([{"path": "/srv/a", "name": 7}], "a mount's name is text"),
        ([{"path": "/srv/a", "writable": "yes"}], "writable is true or false"),
        ([7], "write PATH[:NAME][:rw] or {path, name?, writable?}"),
        ([f"/srv/{n}" for n in range(65)], "at most 64 mounts"),
        (7, "use a list such as"),
    ],
)
def test_mounts_that_cannot_be_are_refused(value: object, told: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_agent({"mounts": value})
    assert told in caught.value.message
    assert caught.value.message.startswith("mounts: ")
