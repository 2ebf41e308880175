"""Registering chats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from hallporter.domain.errors import ConflictError, InvalidRequestError, NotFoundError
from hallporter.domain.ids import ChatId
from hallporter.stores.sqlite import SqliteStore, open_store
from hallporter.switchboard.groups import MAIN_CHAT, GroupChange, Groups, NewGroup
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import FakeClock

FAMILY = NewGroup(chat="fake:family", name="Family", folder="family")
WORK = NewGroup(chat="fake:work", name="Work", folder="work")


class Registry:
    """Groups on a real store; what was closed and what is fixed in the file can be seen and set."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.closed: list[ChatId] = []
        self.fixed: set[str] = set()
        channel = FakeChannel()
        self.groups = Groups(
            store=store,
            clock=FakeClock(),
            channel_of=lambda chat: channel if channel.owns(chat) or chat == MAIN_CHAT else None,
            check_agent=self._check,
            refuse_fixed=self._refuse,
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
