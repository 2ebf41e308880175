"""Registering chats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from hallporter.books import Tx
from hallporter.domain.chat import ChatSeen
from hallporter.domain.errors import ConflictError, InvalidRequestError, NotFoundError
from hallporter.domain.group import Everyone, Others, SenderChange, SenderRule
from hallporter.domain.ids import ChatId, Folder
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.groups import MAIN_CHAT, GroupChange, Groups, NewGroup
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import START, FakeClock

FAMILY = NewGroup(chat="fake:family", name="Family", folder="family")
WORK = NewGroup(chat="fake:work", name="Work", folder="work")


class Registry:
    """Groups on a real store; what was closed and what is fixed in the file can be seen and set."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.closed: list[ChatId] = []
        self.changed: list[Folder] = []
        self.fixed: set[str] = set()
        channel = FakeChannel()
        self.groups = Groups(
            store=store,
            clock=FakeClock(),
            channel_of=lambda chat: channel if channel.owns(chat) or chat == MAIN_CHAT else None,
            check_agent=self._check,
            refuse_fixed=self._refuse,
            refuse_fixed_senders=self._refuse_senders,
            changed=self.changed.append,
            close_warm=self.closed.append,
            assistant_name="Andy",
        )

    def _check(self, values: Mapping[str, object]) -> Mapping[str, object]:
        if "nonsense" in values:
            raise InvalidRequestError("no such key", field="agent")
        return values

    def _refuse(self, folder: str, values: Mapping[str, object]) -> None:
        if folder in self.fixed and values:
            raise ConflictError("the file fixes it", field="agent")

    def _refuse_senders(self, folder: str, _change: SenderChange | Everyone) -> None:
        if folder in self.fixed:
            raise ConflictError("the file fixes it", field="senders")


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    async with open_store(tmp_path / "hallporter.db", FakeClock()) as store:
        yield Registry(store)


@pytest.mark.requirement("trigger.pattern.default")
async def test_a_new_group_has_the_house_s_defaults(registry: Registry) -> None:
    group = await registry.groups.add(FAMILY)

    assert (group.trigger, group.requires_trigger, group.is_main) == ("@Andy", True, False)
    assert await registry.groups.get("family") == group
    assert await registry.groups.all() == [group]
    chat = await registry.store.read(lambda tx: tx.chats.get(group.chat))
    assert chat is not None
    assert (chat.channel, chat.name) == ("fake", "Family")


@pytest.mark.requirement("trigger.pattern.per-group")
async def test_each_group_has_its_own_trigger(registry: Registry) -> None:
    await registry.groups.add(FAMILY)
    new = NewGroup(chat="fake:work", name="Work", folder="work", trigger=r"\bbot\b")

    assert (await registry.groups.add(new)).trigger == r"\bbot\b"


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewGroup(chat="nowhere:x", name="X", folder="x"), "chat"),
        (NewGroup(chat="fake:x", name="X", folder="../x"), "folder"),
        (NewGroup(chat="fake:x", name="X", folder="Global"), "folder"),
        (NewGroup(chat="fake:x", name="  ", folder="x"), "name"),
        (NewGroup(chat="fake:x", name="n" * 201, folder="x"), "name"),
        (NewGroup(chat="fake:x", name="X", folder="x", trigger="("), "trigger"),
        (NewGroup(chat="fake:x", name="X", folder="x", agent={"nonsense": 1}), "agent"),
    ],
)
async def test_what_does_not_fit_is_refused_and_nothing_is_kept(
    registry: Registry, new: NewGroup, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await registry.groups.add(new)

    assert caught.value.facts["field"] == field
    assert await registry.groups.all() == []


async def test_folder_and_chat_are_taken_once_whatever_the_letter_case(registry: Registry) -> None:
    await registry.groups.add(FAMILY)

    with pytest.raises(ConflictError, match="choose another"):
        await registry.groups.add(NewGroup(chat="fake:work", name="Work", folder="FAMILY"))
    with pytest.raises(ConflictError, match="registered already, as 'family'"):
        await registry.groups.add(NewGroup(chat="fake:family", name="Again", folder="again"))


async def test_a_name_is_one_line(registry: Registry) -> None:
    new = NewGroup(chat="fake:x", name="  My\n  family ", folder="x")

    assert (await registry.groups.add(new)).name == "My family"


async def test_only_what_is_given_changes(registry: Registry) -> None:
    before = await registry.groups.add(FAMILY)

    after = await registry.groups.change("Family", GroupChange(name="Us", requires_trigger=False))

    assert (after.name, after.requires_trigger) == ("Us", False)
    assert (after.trigger, after.folder, after.chat) == (before.trigger, "family", before.chat)
    assert await registry.groups.get("family") == after
    assert registry.closed == []


async def test_an_agent_s_keys_change_one_by_one_and_a_warm_one_is_closed(
    registry: Registry,
) -> None:
    group = await registry.groups.add(
        NewGroup(chat="fake:family", name="Family", folder="family", agent={"kind": "demo"})
    )

    changed = await registry.groups.change("family", GroupChange(agent={"timeout": "5m"}))

    assert changed.agent == {"kind": "demo", "timeout": "5m"}
    assert registry.closed == [group.chat]


async def test_what_a_stronger_source_fixes_cannot_be_set(registry: Registry) -> None:
    registry.fixed.add("family")
    await registry.groups.add(FAMILY)

    with pytest.raises(ConflictError):
        await registry.groups.change("family", GroupChange(agent={"kind": "demo"}))


@pytest.mark.parametrize("change", [GroupChange(name=""), GroupChange(trigger="[")])
async def test_a_change_that_does_not_fit_changes_nothing(
    registry: Registry, change: GroupChange
) -> None:
    before = await registry.groups.add(FAMILY)

    with pytest.raises(InvalidRequestError):
        await registry.groups.change("family", change)

    assert await registry.groups.get("family") == before


async def test_the_main_flag_moves_and_is_never_lost(registry: Registry) -> None:
    main = await registry.groups.add(
        NewGroup(chat="fake:family", name="Family", folder="family", is_main=True)
    )
    await registry.groups.add(WORK)

    await registry.groups.change("work", GroupChange(is_main=True))

    assert [(g.folder, g.is_main) for g in await registry.groups.all()] == [
        ("work", True),
        ("family", False),
    ]
    with pytest.raises(ConflictError, match="exactly one group is main"):
        await registry.groups.change("work", GroupChange(is_main=False))
    assert (await registry.groups.change("family", GroupChange(is_main=False))).chat == main.chat


async def test_a_group_that_is_removed_leaves_its_history(registry: Registry) -> None:
    group = await registry.groups.add(FAMILY)

    await registry.groups.remove("family")

    assert await registry.groups.all() == []
    assert await registry.store.read(lambda tx: tx.chats.get(group.chat)) is not None
    assert registry.closed == [group.chat]
    with pytest.raises(NotFoundError, match="no group has the folder 'family'"):
        await registry.groups.get("family")
    with pytest.raises(NotFoundError):
        await registry.groups.remove("family")


async def test_the_main_group_cannot_be_removed(registry: Registry) -> None:
    await registry.groups.ensure_main()

    with pytest.raises(ConflictError, match="make another one main first"):
        await registry.groups.remove("main")


async def test_a_house_without_a_main_group_gets_one_on_the_web_chat_once(
    registry: Registry,
) -> None:
    made = await registry.groups.ensure_main()

    assert made is not None
    assert (made.chat, made.folder, made.is_main) == (MAIN_CHAT, "main", True)
    assert await registry.groups.ensure_main() is None


async def test_a_main_group_elsewhere_is_left_alone(registry: Registry) -> None:
    await registry.groups.add(
        NewGroup(chat="fake:family", name="Family", folder="family", is_main=True)
    )

    assert await registry.groups.ensure_main() is None


async def test_a_folder_named_main_that_is_taken_is_passed_by(
    registry: Registry,
) -> None:
    await registry.groups.add(NewGroup(chat="fake:family", name="Family", folder="main"))
    made = await registry.groups.ensure_main()
    assert made is not None
    assert made.folder == "main-web"


async def test_a_web_chat_that_is_registered_already_becomes_the_main_group(
    registry: Registry,
) -> None:
    await registry.groups.add(NewGroup(chat=MAIN_CHAT, name="Desk", folder="desk"))

    made = await registry.groups.ensure_main()

    assert made is not None
    assert made.is_main
    assert await registry.groups.all() == [made]


# --- a group's own assistant ---------------------------------------------------------------------


@pytest.mark.requirement("trigger.pattern.per-group")
async def test_an_assistant_with_a_name_of_its_own_is_addressed_by_it(registry: Registry) -> None:
    own = await registry.groups.add(replace(FAMILY, assistant_name=" Mona "))
    both = await registry.groups.add(replace(WORK, assistant_name="Mona", trigger="@Work"))

    assert (own.assistant_name, own.trigger) == ("Mona", "@Mona")
    assert both.trigger == "@Work"
    assert await registry.groups.get("family") == own


async def test_a_trigger_made_of_the_name_goes_with_it_and_one_of_its_own_stays(
    registry: Registry,
) -> None:
    await registry.groups.add(FAMILY)
    await registry.groups.add(replace(WORK, trigger="@Work"))

    renamed = await registry.groups.change("family", GroupChange(assistant_name="Mona"))
    other = await registry.groups.change("work", GroupChange(assistant_name="Mona"))
    back = await registry.groups.change("family", GroupChange(assistant_name=""))

    assert (renamed.assistant_name, renamed.trigger) == ("Mona", "@Mona")
    assert (other.assistant_name, other.trigger) == ("Mona", "@Work")
    assert (back.assistant_name, back.trigger) == (None, "@Andy")


async def test_a_warm_agent_with_the_old_name_is_closed(registry: Registry) -> None:
    group = await registry.groups.add(FAMILY)

    await registry.groups.change("family", GroupChange(assistant_name="Mona"))

    assert registry.closed == [group.chat]


async def test_a_name_that_does_not_fit_is_refused(registry: Registry) -> None:
    with pytest.raises(InvalidRequestError, match="one line of 1 to 64"):
        await registry.groups.add(replace(FAMILY, assistant_name="Mo\nna"))
    assert await registry.groups.all() == []


# --- whose words count ---------------------------------------------------------------------------


async def test_a_sender_rule_is_kept_changed_and_lifted(registry: Registry) -> None:
    allow = frozenset({"ada", "bob"})
    made = await registry.groups.add(replace(FAMILY, senders=SenderChange(allow=allow)))
    stored = await registry.groups.change(
        "family", GroupChange(senders=SenderChange(others=Others.STORE))
    )
    kept = await registry.groups.get("family")
    lifted = await registry.groups.change("family", GroupChange(senders=Everyone()))

    assert made.senders == SenderRule(allow=allow, others=Others.IGNORE)
    assert kept.senders == stored.senders == SenderRule(allow=allow, others=Others.STORE)
    assert lifted.senders is None
    assert registry.closed == []


async def test_a_sender_rule_that_the_file_fixes_cannot_be_set(registry: Registry) -> None:
    registry.fixed.add("family")
    await registry.groups.add(FAMILY)

    for change in (Everyone(), SenderChange(allow=frozenset())):
        with pytest.raises(ConflictError, match="the file fixes it"):
            await registry.groups.change("family", GroupChange(senders=change))


# --- part of a larger transaction, and those who must hear of it ---------------------------------


async def test_registering_is_all_or_nothing_with_what_else_a_transaction_does(
    registry: Registry,
) -> None:
    def fn(tx: Tx) -> None:
        registry.groups.register(tx, FAMILY)
        raise InvalidRequestError("something else does not fit")

    with pytest.raises(InvalidRequestError):
        await registry.store.write(fn)

    assert await registry.groups.all() == []
    assert registry.changed == []


async def test_whoever_must_know_hears_of_every_group_that_comes_changes_or_goes(
    registry: Registry,
) -> None:
    await registry.groups.add(replace(FAMILY, is_main=True))
    await registry.groups.add(WORK)
    await registry.groups.change("work", GroupChange(is_main=True))
    await registry.groups.remove("family")

    assert registry.changed == ["family", "work", "family", "work", "family"]


async def test_a_group_that_is_no_longer_main_keeps_no_agent_with_main_s_view(
    registry: Registry,
) -> None:
    family = await registry.groups.add(replace(FAMILY, is_main=True))

    await registry.groups.add(replace(WORK, is_main=True))

    assert registry.closed == [family.chat]


# --- discovery -----------------------------------------------------------------------------------


@pytest.mark.requirement("channel.inbound.metadata-for-every-chat")
async def test_chats_that_were_seen_are_listed_registered_or_not_the_liveliest_first(
    registry: Registry,
) -> None:
    await registry.groups.add(FAMILY)
    later = START + timedelta(hours=1)
    seen = ChatSeen(
        chat=ChatId("fake:club"), channel="fake", at=later, name="The club", is_group=True
    )
    await registry.store.write(lambda tx: tx.chats.seen(seen))

    club, family = await registry.groups.known_chats()

    assert (club.chat, club.name, club.channel, club.is_group) == (
        "fake:club",
        "The club",
        "fake",
        True,
    )
    assert (club.last_activity, club.is_registered, club.folder) == (later, False, None)
    assert (family.name, family.is_registered, family.folder) == ("Family", True, "family")
